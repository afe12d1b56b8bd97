"""Which of the chosen messages the group's subscriptions would not let through. Pure.

Brokers and members filter what they read from a topic. What comes from the retry topic is not filtered: a member gets
it whatever its tag, though it may not know it any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mqadmin.replays.choosing import OriginTag
from remoting.wire.errors import MessageError
from remoting.wire.expressions import TAG
from remoting.wire.tags import parse_tags


@dataclass(frozen=True, slots=True)
class Expression:
    """What one subscription to a topic lets through. `kind` TAG or "": tags; else what brokers alone can evaluate."""

    text: str
    kind: str = TAG


@dataclass(frozen=True, slots=True)
class Filtered:
    """`unwanted`: tags that no subscription of the group to their topic has. `unclear`: topics of which brokers choose
    by an expression over properties."""

    unwanted: tuple[OriginTag, ...] = ()
    unclear: tuple[str, ...] = ()


NOTHING_FILTERED = Filtered()


def filtered(tags: Iterable[OriginTag], wanted: Mapping[str, Sequence[Expression]]) -> Filtered:
    """Returns what would be filtered of these; `wanted`: expressions by topic. None for a topic is another matter."""
    unwanted: list[OriginTag] = []
    unclear: set[str] = set()
    for one in tags:
        expressions = wanted.get(one.topic, ())
        if any(expression.kind not in ("", TAG) for expression in expressions):
            unclear.add(one.topic)
        elif expressions and not any(_lets_through(expression.text, one.tag) for expression in expressions):
            unwanted.append(one)
    return Filtered(tuple(unwanted), tuple(sorted(unclear)))


def _lets_through(text: str, tag: str) -> bool:
    try:
        return parse_tags(text).matches(tag)
    except MessageError:
        return False
