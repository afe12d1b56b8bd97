from __future__ import annotations

import pytest

from consumer.engine.subscriptions import original_topic, subscribe
from remoting.wire.errors import MessageError
from remoting.wire.expressions import SqlExpression
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import StoredMessage


def test_a_group_subscribes_to_its_topics_and_to_its_own_retries() -> None:
    documents = subscribe("billing", {"orders": "TagA || TagA ||refunded", "invoices": "*"}, 5).to_wire()
    assert [(item.topic, item.sub_string, item.tags_set, item.sub_version) for item in documents] == [
        ("orders", "TagA || TagA ||refunded", ["TagA", "refunded"], 5),
        ("invoices", "*", [], 5),
        ("%RETRY%billing", "*", [], 5),
    ]
    assert 2598919 in documents[0].code_set


@pytest.mark.parametrize(
    ("group", "topic", "tags", "text"),
    [
        ("", "orders", "*", "group name is blank"),
        ("b" * 121, "orders", "*", "121 characters"),
        ("billing", "orders today", "*", "topic name 'orders today'"),
        ("billing", "o" * 128, "*", "128 characters"),
        ("billing", "orders", " || ", "names no tag"),
    ],
)
def test_what_rocketmq_would_not_take_is_refused(group: str, topic: str, tags: str, text: str) -> None:
    with pytest.raises(MessageError, match=text):
        subscribe(group, {topic: tags}, 0)


@pytest.mark.parametrize(
    ("topic", "properties", "expected"),
    [
        ("orders", {}, "orders"),
        ("orders", {"RETRY_TOPIC": "elsewhere"}, "orders"),
        ("%RETRY%billing", {"RETRY_TOPIC": "orders"}, "orders"),
        ("%RETRY%billing", {}, "%RETRY%billing"),
    ],
)
def test_a_retry_is_a_message_of_the_topic_it_was_sent_to_first(
    topic: str, properties: dict[str, str], expected: str
) -> None:
    stored = StoredMessage(topic=topic, queue_id=0, properties_text=encode_properties(properties))
    assert original_topic(stored) == expected


def test_an_sql_expression_is_sent_as_it_is_and_lets_everything_through_here() -> None:
    subscriptions = subscribe("billing", {"orders": SqlExpression("amount > 100")}, 5)
    document = subscriptions.of_topic("orders")
    assert (document.expression_type, document.sub_string) == ("SQL92", "amount > 100")
    assert (document.tags_set, document.code_set) == ([], [])
    assert [subscriptions.kind(topic) for topic in subscriptions.topics] == ["SQL92", "TAG"]
    assert subscriptions.matches(StoredMessage(topic="orders", queue_id=0))


def test_a_blank_sql_expression_is_refused() -> None:
    with pytest.raises(MessageError, match="blank"):
        subscribe("billing", {"orders": SqlExpression(" ")}, 0)
