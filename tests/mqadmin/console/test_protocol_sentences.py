"""What `remoting` really says has its Chinese: names that break a rule, addresses that do not answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import ECONNREFUSED, ECONNRESET, EHOSTUNREACH

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils.translation import override

from mqadmin.console.protocol_sentences import PROTOCOL_SENTENCES
from mqadmin.console.stored_words import in_viewers_language
from mqadmin.groups.rules import GroupField
from mqadmin.topics.rules import TopicField
from remoting.client.errors import BrokerRefused, NotConnected, NotSupported, NoTurn, RequestTimedOut
from remoting.wire.codes import RequestCode, ResponseCode


def refusal(clean: Callable[[str], object], name: str) -> str:
    with pytest.raises(ValidationError) as refused:
        clean(name)
    return refused.value.messages[0]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (refusal(TopicField().run_validators, "a b"), "主题名称 'a b' 含有"),
        (refusal(TopicField().run_validators, "t" * 300), "主题名称有 300 个字符"),
        (refusal(TopicField().run_validators, "  "), "主题名称为空。"),
        (refusal(GroupField().run_validators, "a b"), "消费者组名称 'a b' 含有"),
        (refusal(GroupField().run_validators, "g" * 300), "消费者组名称有 300 个字符"),
        (refusal(GroupField().run_validators, "  "), "消费者组名称为空。"),
        (str(NotConnected("h:1", os.strerror(ECONNREFUSED))), "无法连接 h:1：连接被拒绝"),
        (str(NotConnected("h:1", os.strerror(ECONNRESET))), "无法连接 h:1：连接被对方重置"),
        (str(NotConnected("h:1", os.strerror(EHOSTUNREACH))), "无法连接 h:1：没有到主机的路由"),
        (str(NotConnected("h:1", "nothing answered within 3000 ms")), "无法连接 h:1：3000 毫秒内没有应答"),
        (
            str(RequestTimedOut("h:1", RequestCode.GET_BROKER_CONFIG, 3000)),
            "h:1 在 3000 毫秒内没有应答 GET_BROKER_CONFIG",
        ),
        (str(BrokerRefused("h:1", 26, ResponseCode.SYSTEM_ERROR, "store is full")), "h:1 拒绝了 GET_BROKER_CONFIG："),
        (str(BrokerRefused("h:1", 26, ResponseCode.SYSTEM_ERROR, None)), "h:1 拒绝了 GET_BROKER_CONFIG："),
        (str(NotSupported("h:1", 26, 453)), "该 Broker 不支持 GET_BROKER_CONFIG (26)：h:1 的版本为"),
        (
            "no name server answers (no connection to h:1: Connection refused; no connection to i:1: No route to host)"
            ": start one, or correct the address",
            "没有 NameServer 应答（无法连接 h:1：连接被拒绝; 无法连接 i:1：没有到主机的路由）：请启动",
        ),
        (str(NoTurn("h:1", 500)), "h:1：500 毫秒内没有轮到新的请求"),
    ],
)
def test_what_is_really_said_has_its_chinese(said: str, shown: str) -> None:
    with override("zh-hans"):
        assert in_viewers_language(said).startswith(shown)
    assert in_viewers_language(said) == said


def test_no_sentence_is_listed_twice() -> None:
    assert len(set(PROTOCOL_SENTENCES)) == len(PROTOCOL_SENTENCES)


def test_a_form_says_in_chinese_what_is_wrong_with_a_name(http: Client, cluster: object) -> None:
    page = http.get(
        "/clusters/local/create-topic/?topic=a b&read_queues=4&write_queues=4&perm=6", headers={"Accept-Language": "zh"}
    )
    assert "主题名称 &#x27;a b&#x27; 含有" in page.content.decode()
