"""Who of a group asks for something else than the others: observed and remembered, never acted upon.

A group has one subscription table, so members that do not ask for the same take messages from each other: the larger
version wins, and what it filters out is lost for the others (see `members.py`). Here stands what each member itself
asked for at the topics where the members disagree, from when to when, and with whom. Two members differ at a topic by
expression, by its type, or because only one of them subscribes.

Pure: "now" is given, in ms since the epoch. A change costs the topics it touches; only where a disagreement begins or
ends are all members looked at. What is remembered of a member goes with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from remoting.wire.bodies.heartbeat import SubscriptionData

# Per member; a member that differs at more topics than this differs in its whole code.
DIFFERENCES_MAX = 32
# Members named beside one difference.
OTHERS_MAX = 8

# Expression type and expression; None: does not subscribe.
Wish = tuple[str, str] | None


@dataclass(slots=True)
class Difference:
    """What one member asked for where others did not. `is_over`: it changed its mind, or they did."""

    topic: str
    wish: Wish
    sub_version: int
    since_ms: int
    last_seen_ms: int
    is_over: bool = False
    others: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Asker:
    client_id: str
    wants: dict[str, SubscriptionData] = field(default_factory=dict)
    differences: dict[tuple[str, Wish], Difference] = field(default_factory=dict)

    def wish(self, topic: str) -> Wish:
        subscription = self.wants.get(topic)
        return (subscription.expression_type, subscription.sub_string) if subscription is not None else None

    def differs(self, topic: str, now_ms: int) -> None:
        """From now on, or still, and with what it wants now."""
        wish = self.wish(topic)
        for difference in self.differences.values():
            if difference.topic == topic and difference.wish != wish:
                difference.is_over = True
        known = self.differences.get((topic, wish))
        if known is None or known.is_over:
            self.differences.pop((topic, wish), None)
            self._make_room()
            if len(self.differences) < DIFFERENCES_MAX:
                version = self.wants[topic].sub_version if wish is not None else 0
                self.differences[topic, wish] = Difference(topic, wish, version, now_ms, now_ms)

    def agrees(self, topic: str) -> None:
        for difference in self.differences.values():
            if difference.topic == topic:
                difference.is_over = True

    def _make_room(self) -> None:
        """What is over goes first, the oldest of it."""
        if len(self.differences) >= DIFFERENCES_MAX:
            over = [key for key, difference in self.differences.items() if difference.is_over]
            for key in over[:1]:
                del self.differences[key]


class Differences:
    """Of one group. Members are named by any key of the caller's."""

    def __init__(self) -> None:
        self._askers: dict[Hashable, _Asker] = {}
        self._wishes: dict[str, Counter[Wish]] = {}
        self._disputed: set[str] = set()

    def asked(self, key: Hashable, client_id: str, wanted: Iterable[SubscriptionData], now_ms: int) -> None:
        """A member said all that it wants."""
        asker = self._askers.get(key)
        is_new = asker is None
        if asker is None:
            asker = self._askers[key] = _Asker(client_id)
        before = {topic: asker.wish(topic) for topic in asker.wants}
        asker.wants = {subscription.topic: subscription for subscription in wanted}
        after = {topic: asker.wish(topic) for topic in asker.wants}
        changed = {topic for topic in before.keys() | after.keys() if before.get(topic) != after.get(topic)}
        for topic in changed:
            self._count(topic, before.get(topic), after.get(topic))
        self._judge(set(self._wishes) | changed if is_new else changed, asker, now_ms)
        self.seen(key, now_ms)

    def seen(self, key: Hashable, now_ms: int) -> None:
        """A heartbeat: what it differed in, it still differs in."""
        asker = self._askers.get(key)
        for difference in asker.differences.values() if asker is not None else ():
            if not difference.is_over:
                difference.last_seen_ms = now_ms
                subscription = asker.wants.get(difference.topic) if asker is not None else None
                difference.sub_version = subscription.sub_version if subscription is not None else 0

    def left(self, key: Hashable, now_ms: int) -> None:
        asker = self._askers.pop(key, None)
        if asker is None:
            return
        for topic in asker.wants:
            self._count(topic, asker.wish(topic), None)
        self._judge(set(self._wishes) | set(asker.wants), None, now_ms)

    def told(self) -> dict[Hashable, list[Difference]]:
        """By member, with whom each difference is now."""
        sides = {topic: self._sides(topic) for topic in self._disputed}
        for asker in self._askers.values():
            for difference in asker.differences.values():
                of_topic = {} if difference.is_over else sides.get(difference.topic, {})
                difference.others = [
                    client_id for wish, ids in of_topic.items() if wish != difference.wish for client_id in ids
                ][:OTHERS_MAX]
        return {key: list(asker.differences.values()) for key, asker in self._askers.items()}

    def _sides(self, topic: str) -> dict[Wish, list[str]]:
        sides: dict[Wish, list[str]] = {}
        for asker in self._askers.values():
            ids = sides.setdefault(asker.wish(topic), [])
            if len(ids) < OTHERS_MAX:
                ids.append(asker.client_id)
        return sides

    def _count(self, topic: str, before: Wish, after: Wish) -> None:
        wishes = self._wishes.setdefault(topic, Counter())
        if before is not None:
            wishes[before] -= 1
            if not wishes[before]:
                del wishes[before]
        if after is not None:
            wishes[after] += 1
        if not wishes:
            del self._wishes[topic]

    def _judge(self, topics: Iterable[str], changed: _Asker | None, now_ms: int) -> None:
        """`changed`: who said something else; the others only hear of a disagreement that begins or ends."""
        for topic in topics:
            if self._is_disputed(topic):
                everybody = topic not in self._disputed
                self._disputed.add(topic)
                for asker in self._askers.values() if everybody else () if changed is None else (changed,):
                    asker.differs(topic, now_ms)
            elif topic in self._disputed:
                self._disputed.discard(topic)
                for asker in self._askers.values():
                    asker.agrees(topic)

    def _is_disputed(self, topic: str) -> bool:
        wishes = self._wishes.get(topic)
        return wishes is not None and (len(wishes) > 1 or sum(wishes.values()) < len(self._askers))
