"""The subscriptions of a consumer group, as each member's heartbeat carries them.

All members of a group must have the same. A member's `sub_version` is the time of its start and does not change: after
a deployment with another expression that of the newest members stays in force, where Java's members overwrite each
other with every rebalance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.expressions import Expression, SqlExpression, expression_type, parse_expression
from remoting.wire.names import check_group, check_topic, is_retry_topic, retry_topic
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage

DEFAULT_GROUP = "DEFAULT_CONSUMER"


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """`expressions` by topic, the group's own retry topic included unless it is broadcasting."""

    group: str
    version_ms: int
    expressions: Mapping[str, Expression]
    is_broadcasting: bool = False

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(self.expressions)

    def to_wire(self) -> list[SubscriptionData]:
        return [self.of_topic(topic) for topic in self.expressions]

    def of_topic(self, topic: str) -> SubscriptionData:
        expression = self.expressions[topic]
        return SubscriptionData(
            topic=topic,
            expression_type=self.kind(topic),
            sub_string=expression.text,
            tags_set=list(expression.tags),
            code_set=sorted(expression.codes),
            sub_version=self.version_ms,
        )

    def kind(self, topic: str) -> str:
        """Returns the expression type, as pulls and heartbeats name it."""
        return expression_type(self.expressions.get(topic))

    def matches(self, message: StoredMessage) -> bool:
        """Compares the tag's text: the broker compares hash codes, which collide."""
        expression = self.expressions.get(message.topic)
        return expression is None or expression.matches(message.tags)


def subscribe(
    group: str, expressions: Mapping[str, str | SqlExpression], now_ms: int, *, is_broadcasting: bool = False
) -> Subscriptions:
    """Takes for each topic a tag expression as text, or an SqlExpression.

    Raises MessageError naming the group, topic or expression that RocketMQ would not take.
    """
    check_consumer_group(group)
    parsed: dict[str, Expression] = {}
    for topic, expression in expressions.items():
        check_topic(topic)
        parsed[topic] = parse_expression(expression)
    if not is_broadcasting:
        parsed[retry_topic(group)] = parse_expression(None)
    return Subscriptions(group, now_ms, parsed, is_broadcasting)


def check_consumer_group(group: str) -> None:
    """Raises MessageError for a name that is none, and for the one that stands for "not set" in Java's clients."""
    check_group(group)
    if group == DEFAULT_GROUP:
        raise MessageError(
            f"the group name {group} is the default of RocketMQ's clients: choose another",
            ResponseCode.INVALID_PARAMETER,
        )


def original_topic(message: StoredMessage) -> str:
    """Returns the topic that the producer sent the message to, also when it was pulled from the retry topic."""
    if is_retry_topic(message.topic):
        return message.properties.get(Property.RETRY_TOPIC, message.topic)
    return message.topic
