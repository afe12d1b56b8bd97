from __future__ import annotations

import pytest

from remoting.wire import names
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError


@pytest.mark.parametrize("topic", ["a", "orders-2024_x", "%RETRY%billing", "ns%orders", "a|b", "x" * 127])
def test_legal_topics_pass(topic: str) -> None:
    names.check_topic(topic)


@pytest.mark.parametrize(
    ("topic", "rule"),
    [
        ("", "is blank"),
        ("  ", "is blank"),
        ("x" * 128, "128 characters; 127 are allowed"),
        ("%DLQ%" + "x" * 251, "256 characters; 255 are allowed"),
        ("a b", "'a b' holds a character"),
        ("a.b", "holds a character"),
        ("订单", "holds a character"),
        ("a\n", "holds a character"),
    ],
)
def test_illegal_topics_are_refused_with_the_rule(topic: str, rule: str) -> None:
    with pytest.raises(MessageError, match=rule) as caught:
        names.check_topic(topic)
    assert caught.value.response_code == ResponseCode.INVALID_PARAMETER


def test_retry_and_dead_letter_topics_may_be_longer() -> None:
    names.check_topic(names.retry_topic("g" * 120))
    names.check_topic("%DLQ%" + "x" * 250)


def test_groups_have_120_characters_at_most() -> None:
    names.check_group("g" * 120)
    with pytest.raises(MessageError, match="the group name has 121 characters"):
        names.check_group("g" * 121)


def test_derived_names_are_recognised() -> None:
    assert names.retry_topic("g") == "%RETRY%g"
    assert names.dlq_topic("g") == "%DLQ%g"
    assert names.is_retry_topic("%RETRY%g")
    assert not names.is_retry_topic("%DLQ%g")
    assert names.is_dlq_topic("%DLQ%g")


def test_system_names_are_recognised() -> None:
    assert names.is_system_topic("SCHEDULE_TOPIC_XXXX")
    assert names.is_system_topic("rmq_sys_wheel_timer")
    assert not names.is_system_topic("orders")
    assert names.is_system_group("TOOLS_CONSUMER")
    assert names.is_system_group("CID_RMQ_SYS_TRANS")
    assert not names.is_system_group("billing")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("prod%orders", ("prod", "orders")),
        ("prod%orders%eu", ("prod", "orders%eu")),
        ("%RETRY%prod%billing", ("prod", "%RETRY%billing")),
        ("%DLQ%prod%billing", ("prod", "%DLQ%billing")),
        ("orders", ("", "orders")),
        ("%RETRY%billing", ("", "%RETRY%billing")),
        ("prod%", ("", "prod%")),
        ("rmq_sys_wheel%timer", ("", "rmq_sys_wheel%timer")),
        ("", ("", "")),
    ],
)
def test_names_are_taken_apart_at_their_namespace(name: str, parts: tuple[str, str]) -> None:
    assert names.split_namespace(name) == parts


@pytest.mark.parametrize(
    ("namespace", "name", "wrapped"),
    [
        ("prod", "orders", "prod%orders"),
        ("prod", "%RETRY%billing", "%RETRY%prod%billing"),
        ("prod", "%DLQ%billing", "%DLQ%prod%billing"),
        ("prod", "other%orders", "prod%other%orders"),
        ("", "orders", "orders"),
    ],
)
def test_a_namespace_is_put_before_a_name_once_and_taken_away_again(namespace: str, name: str, wrapped: str) -> None:
    assert names.with_namespace(namespace, name) == wrapped
    assert names.with_namespace(namespace, wrapped) == wrapped
    assert names.without_namespace(namespace, wrapped) == name
    assert names.without_namespace(namespace, name) == name


@pytest.mark.parametrize("name", ["", "TBW102", "RMQ_SYS_TRACE_TOPIC", "CID_RMQ_SYS_TRANS"])
def test_names_of_rocketmqs_own_are_in_no_namespace(name: str) -> None:
    assert names.with_namespace("prod", name) == name
