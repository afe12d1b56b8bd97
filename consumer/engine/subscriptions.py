"""The subscriptions of a consumer group, as each member's heartbeat carries them.

All members of a group must have the same. A member's `sub_version` is the time of its start and does not change: after
a deployment with another expression that of the newest members stays in force, where Java's members overwrite each
other with every rebalance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.names import check_group, check_topic, is_retry_topic, retry_topic
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage
from remoting.wire.tags import TagExpression, parse_tags


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """`expressions`: topic → tags, the group's own retry topic included."""

    group: str
    version_ms: int
    expressions: Mapping[str, TagExpression]

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(self.expressions)

    def to_wire(self) -> list[SubscriptionData]:
        return [
            SubscriptionData(
                topic=topic,
                sub_string=expression.text,
                tags_set=list(expression.tags),
                code_set=sorted(expression.codes),
                sub_version=self.version_ms,
            )
            for topic, expression in self.expressions.items()
        ]

    def matches(self, message: StoredMessage) -> bool:
        """Compares the tag's text: the broker compares hash codes, which collide."""
        expression = self.expressions.get(message.topic)
        return expression is None or expression.matches_all or expression.matches(message.tags)


def subscribe(group: str, tags_by_topic: Mapping[str, str], now_ms: int) -> Subscriptions:
    """Raises MessageError naming the group, topic or expression that RocketMQ would not take."""
    check_group(group)
    expressions: dict[str, TagExpression] = {}
    for topic, tags in tags_by_topic.items():
        check_topic(topic)
        expressions[topic] = parse_tags(tags)
    expressions[retry_topic(group)] = parse_tags(None)
    return Subscriptions(group, now_ms, expressions)


def original_topic(message: StoredMessage) -> str:
    """Returns the topic that the producer sent the message to, also when it was pulled from the retry topic."""
    if is_retry_topic(message.topic):
        return message.properties.get(Property.RETRY_TOPIC, message.topic)
    return message.topic
