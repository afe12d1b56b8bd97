"""Each kind's request, its signature by published examples, and what in an answer says that it was not taken."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from mqadmin.alerts.channels import dingtalk, feishu, slack, webhook, wecom
from mqadmin.alerts.channels.kinds import ChannelKind
from mqadmin.alerts.channels.sending import POSTED
from mqadmin.alerts.conditions import About
from mqadmin.alerts.messages import LINES_MAX, Message, Told, message
from mqadmin.alerts.noticing import NoticeKind
from mqadmin.alerts.posting import Answer

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADDRESS = {"url": "https://example.com/hook?access_token=t"}


def told(number: int, name: str = "billing") -> Told:
    return Told(
        id=number,
        about=About.LAG,
        cluster="prod",
        name=name,
        state="firing",
        reading={"value": 1200, "threshold": 1000},
        since=AT,
        fired_at=AT,
        resolved_at=None,
        url=f"https://mq.example.com/clusters/prod/groups/{name}/lag/?at=1",
    )


def written(
    count: int = 1, language: str = "en", name: str = "billing", kind: NoticeKind = NoticeKind.FIRED
) -> Message:
    alerts = [told(one, name) for one in range(min(count, LINES_MAX))]
    url = "https://mq.example.com/alerts/"
    return message(kind, "backlog", "prod", alerts, count, language=language, url=url, key="k-1")


def test_a_message_says_what_fires_where_and_links_to_it() -> None:
    found = written()
    assert found.title == "FIRING backlog: billing in prod"
    assert found.lines[0].words == "1,200 messages wait; the rule allows 1,000."
    assert found.lines[0].url in found.text
    assert found.url in found.text


@pytest.mark.parametrize(
    ("language", "title", "words"),
    [
        ("en", "FIRING clusters: prod", "STALLED: 3 groups STALLED, 1 broker away."),
        ("zh-hans", "触发 clusters：prod", "停滞：3 个消费组停滞，1 个 Broker 离线。"),
    ],
)
def test_a_message_about_a_cluster_names_it_once_and_says_all_that_is_not_right(
    language: str, title: str, words: str
) -> None:
    findings = [{"verdict": "stalled", "count": 3}, {"verdict": "partial", "count": 1}]
    reading = {"verdict": "stalled", "value": 4, "findings": findings}
    alert = replace(told(1, ""), about=About.CLUSTER_VERDICT, reading=reading)
    address = "https://mq.example.com/alerts/"
    found = message(NoticeKind.FIRED, "clusters", "prod", [alert], 1, language=language, url=address, key="k-1")
    assert (found.title, found.lines[0].name, found.lines[0].words) == (title, "prod", words)
    assert found.document["alerts"][0]["reading"] == reading


def test_a_message_in_chinese() -> None:
    found = written(language="zh-hans")
    assert found.title == "触发 backlog：prod 的 billing"
    assert found.lines[0].words == "堆积 1,200 条消息；规则允许 1,000 条。"


@pytest.mark.parametrize(
    ("kind", "one", "many"),
    [
        (NoticeKind.RESOLVED, "RESOLVED backlog: billing in prod", "RESOLVED backlog: 30 in prod"),
        (NoticeKind.ESCALATED, "NOT ACKNOWLEDGED backlog: billing in prod", "NOT ACKNOWLEDGED backlog: 30 in prod"),
    ],
)
def test_other_kinds_of_notices(kind: NoticeKind, one: str, many: str) -> None:
    assert (written(kind=kind).title, written(30, kind=kind).title) == (one, many)


def test_many_are_one_message_of_some_lines() -> None:
    found = written(500)
    assert found.title == "FIRING backlog: 500 in prod"
    assert len(found.lines) == LINES_MAX
    assert found.rest == "and 480 more"
    assert found.document["alert_count"] == 500


def test_the_webhooks_signature_is_that_of_the_documentation() -> None:
    sent = webhook.post(written(), {**ADDRESS, "secret": "s"}, 1_795_404_000.7)
    signed = b"v1:1795404000:" + sent.body
    digest = hmac.new(b"s", signed, hashlib.sha256).hexdigest()
    assert sent.headers["X-Mqadmin-Signature"] == f"v1={digest}"
    assert sent.headers["X-Mqadmin-Timestamp"] == "1795404000"
    assert json.loads(sent.body)["id"] == "k-1"


def test_without_a_secret_a_webhook_is_not_signed() -> None:
    assert "X-Mqadmin-Signature" not in webhook.post(written(), ADDRESS, 0).headers


def test_dingtalks_sign_is_that_of_its_published_inputs() -> None:
    assert dingtalk.sign("this is secret", 1577262236757) == "hmPWwU%2B7lVdm3ZZz0r9tSfx0L4Q26jWOZr9%2BGs6EZQM%3D"


def test_dingtalk_gets_markdown_with_the_sign_in_the_address() -> None:
    sent = dingtalk.post(written(), {**ADDRESS, "secret": "this is secret"}, 1577262236.757)
    assert sent.url == (
        "https://example.com/hook?access_token=t&timestamp=1577262236757"
        "&sign=hmPWwU%2B7lVdm3ZZz0r9tSfx0L4Q26jWOZr9%2BGs6EZQM%3D"
    )
    body = json.loads(sent.body)
    assert body["msgtype"] == "markdown"
    assert "[billing](https://mq.example.com/clusters/prod/groups/billing/lag/?at=1)" in body["markdown"]["text"]
    assert dingtalk.post(written(), ADDRESS, 0).url == ADDRESS["url"]


def test_feishus_sign_is_that_of_its_published_inputs() -> None:
    assert feishu.sign("demo", 1599360473) == "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8="


def test_feishu_gets_a_post_with_the_sign_in_the_body() -> None:
    body = json.loads(feishu.post(written(), {**ADDRESS, "secret": "demo"}, 1599360473.9).body)
    assert (body["timestamp"], body["sign"]) == ("1599360473", "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8=")
    assert body["msg_type"] == "post"
    (first, *_) = body["content"]["post"]["zh_cn"]["content"]
    assert first[0] == {"tag": "a", "text": "billing", "href": told(0).url}
    assert "sign" not in json.loads(feishu.post(written(), ADDRESS, 0).body)


def test_slack_gets_blocks_in_which_names_are_no_markup() -> None:
    body = json.loads(slack.post(written(name="<!channel>&|"), ADDRESS, 0).body)
    assert body["text"] == "FIRING backlog: &lt;!channel&gt;&amp;| in prod"
    text = body["blocks"][1]["text"]
    assert text["type"] == "mrkdwn"
    assert "<!channel>" not in text["text"].replace(told(0, "<!channel>&|").url, "")


def test_slacks_sections_are_not_too_long() -> None:
    body = json.loads(slack.post(written(LINES_MAX, name="g" * 255), ADDRESS, 0).body)
    assert max(len(one["text"]["text"]) for one in body["blocks"]) <= slack.TEXT_CHARS_MAX
    assert len(body["blocks"]) > 2


def test_wecom_gets_what_fits() -> None:
    body = json.loads(wecom.post(written(LINES_MAX, name="g" * 255), ADDRESS, 0).body)
    text = body["markdown"]["content"]
    assert len(text.encode()) <= wecom.TEXT_BYTES_MAX
    assert text.endswith("(https://mq.example.com/alerts/)")


@pytest.mark.parametrize(
    ("kind", "status", "body", "complaint"),
    [
        ("webhook", 204, b"", ""),
        ("webhook", 302, b"", "it answered 302"),
        ("slack", 200, b"ok", ""),
        ("slack", 404, b"no_service", "it answered 404"),
        ("dingtalk", 200, b'{"errcode":0,"errmsg":"ok"}', ""),
        ("dingtalk", 200, b'{"errcode":310000,"errmsg":"sign not match"}', "it answered error 310000: sign not match"),
        (
            "wecom",
            200,
            b'{"errcode":93000,"errmsg":"invalid webhook url"}',
            "it answered error 93000: invalid webhook url",
        ),
        ("wecom", 502, b"", "it answered 502"),
        ("feishu", 200, b'{"code":0,"msg":"success"}', ""),
        ("feishu", 200, b'{"StatusCode":0,"StatusMessage":"success"}', ""),
        ("feishu", 200, b'{"code":19021,"msg":"sign match fail"}', "it answered error 19021: sign match fail"),
        ("feishu", 200, b"<html>", "it answered 200 with something that is not JSON"),
        ("dingtalk", 200, b"[]", "it answered error None: "),
    ],
)
def test_what_counts_as_taken(kind: Any, status: int, body: bytes, complaint: str) -> None:
    assert POSTED[ChannelKind(kind)].complaint(Answer(status, body)) == complaint
