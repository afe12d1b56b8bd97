"""What a group wants to hear, as a heartbeat says it.

All members of a group must say the same. A member's `sub_version` is when it started and does not move: after a
deployment with another expression the newer members' word stands, where Java's members overwrite each other with
every rebalance.
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

    def document(self) -> list[SubscriptionData]:
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

    def wants(self, message: StoredMessage) -> bool:
        """The check on the text: the broker's is by hash, and hashes collide."""
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


def first_topic(message: StoredMessage) -> str:
    """The topic that the message was sent to first, also when it comes back from the retry topic."""
    if is_retry_topic(message.topic):
        return message.properties.get(Property.RETRY_TOPIC, message.topic)
    return message.topic
