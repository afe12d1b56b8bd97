"""Subscriptions in which the members of a group disagree: observed and remembered, never acted upon.

RocketMQ keeps one subscription table per group, so members that subscribe differently take messages from each other:
the larger version wins, and what its expression filters out is lost for the others (see `members.py`). Kept here,
for each topic at which they disagree: what each member subscribed to, from when to when, and against whom. Two members
disagree at a topic by expression, by its type, or because only one of them subscribes.

Pure: "now" is given, in ms since the epoch. A change costs the topics it touches; only where a conflict begins or ends
are all members compared. What is remembered of a member goes with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from remoting.wire.bodies.heartbeat import SubscriptionData

# Per member; a member in conflict at more topics than this runs other code altogether.
CONFLICTS_MAX = 32
# Members named beside one conflict.
OTHERS_MAX = 8

# (expression type, expression) of a subscription; None: not subscribed.
Expression = tuple[str, str] | None


@dataclass(slots=True)
class SubscriptionConflict:
    """What one member subscribed to where others did otherwise. `is_over`: it changed its subscription, or they did.

    `others`: client ids of members with another expression.
    """

    topic: str
    expression: Expression
    sub_version: int
    since_ms: int
    last_seen_ms: int
    is_over: bool = False
    others: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Member:
    client_id: str
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    conflicts: dict[tuple[str, Expression], SubscriptionConflict] = field(default_factory=dict)

    def expression(self, topic: str) -> Expression:
        subscription = self.subscriptions.get(topic)
        return (subscription.expression_type, subscription.sub_string) if subscription is not None else None

    def begin_conflict(self, topic: str, now_ms: int) -> None:
        """Notes the present expression as in conflict, from now on or still; conflicts of earlier ones are over."""
        expression = self.expression(topic)
        for conflict in self.conflicts.values():
            if conflict.topic == topic and conflict.expression != expression:
                conflict.is_over = True
        known = self.conflicts.get((topic, expression))
        if known is None or known.is_over:
            self.conflicts.pop((topic, expression), None)
            self._make_room()
            if len(self.conflicts) < CONFLICTS_MAX:
                version = self.subscriptions[topic].sub_version if expression is not None else 0
                self.conflicts[topic, expression] = SubscriptionConflict(topic, expression, version, now_ms, now_ms)

    def end_conflict(self, topic: str) -> None:
        for conflict in self.conflicts.values():
            if conflict.topic == topic:
                conflict.is_over = True

    def _make_room(self) -> None:
        """Forgets the oldest conflict that is over, where there are too many."""
        if len(self.conflicts) >= CONFLICTS_MAX:
            over = [key for key, conflict in self.conflicts.items() if conflict.is_over]
            for key in over[:1]:
                del self.conflicts[key]


class SubscriptionConflicts:
    """The conflicts of one group. Its members are named by any key of the caller's."""

    def __init__(self) -> None:
        self._members: dict[Hashable, _Member] = {}
        # By topic: how many members subscribe with which expression.
        self._expressions: dict[str, Counter[Expression]] = {}
        self._disputed: set[str] = set()

    def record_heartbeat(
        self, key: Hashable, client_id: str, subscriptions: Iterable[SubscriptionData], now_ms: int
    ) -> None:
        """Takes all that a member subscribes to."""
        member = self._members.get(key)
        is_new = member is None
        if member is None:
            member = self._members[key] = _Member(client_id)
        before = {topic: member.expression(topic) for topic in member.subscriptions}
        member.subscriptions = {subscription.topic: subscription for subscription in subscriptions}
        after = {topic: member.expression(topic) for topic in member.subscriptions}
        changed = {topic for topic in before.keys() | after.keys() if before.get(topic) != after.get(topic)}
        for topic in changed:
            self._count(topic, before.get(topic), after.get(topic))
        self._judge(set(self._expressions) | changed if is_new else changed, member, now_ms)
        self.refresh(key, now_ms)

    def refresh(self, key: Hashable, now_ms: int) -> None:
        """Notes that the member's conflicts last until now."""
        member = self._members.get(key)
        for conflict in member.conflicts.values() if member is not None else ():
            if not conflict.is_over:
                conflict.last_seen_ms = now_ms
                subscription = member.subscriptions.get(conflict.topic) if member is not None else None
                conflict.sub_version = subscription.sub_version if subscription is not None else 0

    def remove_member(self, key: Hashable, now_ms: int) -> None:
        """Forgets a member that left; conflicts of the others with it alone are over."""
        member = self._members.pop(key, None)
        if member is None:
            return
        for topic in member.subscriptions:
            self._count(topic, member.expression(topic), None)
        self._judge(set(self._expressions) | set(member.subscriptions), None, now_ms)

    def snapshot(self) -> dict[Hashable, list[SubscriptionConflict]]:
        """Returns each member's conflicts, with the members against which they are now."""
        sides = {topic: self._sides(topic) for topic in self._disputed}
        for member in self._members.values():
            for conflict in member.conflicts.values():
                of_topic = {} if conflict.is_over else sides.get(conflict.topic, {})
                conflict.others = [
                    client_id
                    for expression, ids in of_topic.items()
                    if expression != conflict.expression
                    for client_id in ids
                ][:OTHERS_MAX]
        return {key: list(member.conflicts.values()) for key, member in self._members.items()}

    def _sides(self, topic: str) -> dict[Expression, list[str]]:
        """Returns the client ids of the members with each expression, few of each."""
        sides: dict[Expression, list[str]] = {}
        for member in self._members.values():
            ids = sides.setdefault(member.expression(topic), [])
            if len(ids) < OTHERS_MAX:
                ids.append(member.client_id)
        return sides

    def _count(self, topic: str, before: Expression, after: Expression) -> None:
        expressions = self._expressions.setdefault(topic, Counter())
        if before is not None:
            expressions[before] -= 1
            if not expressions[before]:
                del expressions[before]
        if after is not None:
            expressions[after] += 1
        if not expressions:
            del self._expressions[topic]

    def _judge(self, topics: Iterable[str], changed: _Member | None, now_ms: int) -> None:
        """Begins and ends conflicts at `topics`. Of one that goes on, only the `changed` member is compared."""
        for topic in topics:
            if self._is_disputed(topic):
                has_begun = topic not in self._disputed
                self._disputed.add(topic)
                for member in self._members.values() if has_begun else () if changed is None else (changed,):
                    member.begin_conflict(topic, now_ms)
            elif topic in self._disputed:
                self._disputed.discard(topic)
                for member in self._members.values():
                    member.end_conflict(topic)

    def _is_disputed(self, topic: str) -> bool:
        expressions = self._expressions.get(topic)
        return expressions is not None and (len(expressions) > 1 or sum(expressions.values()) < len(self._members))
