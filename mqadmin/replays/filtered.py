"""Which of the chosen messages the group's subscriptions would not let through. Pure.

Brokers and members filter what they read from a topic. What comes from the retry topic is not filtered: a member gets
it whatever its tag and its properties, though it may not know it any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mqadmin.replays.choosing import OriginProperties, OriginTag
from remoting.sql92.property_filter import PropertyFilter
from remoting.wire.errors import MessageError
from remoting.wire.expressions import SQL92, TAG
from remoting.wire.properties import Property, encode_properties
from remoting.wire.property_lookup import TEXT_START
from remoting.wire.tags import parse_tags

Judge = Callable[[OriginProperties], bool]


@dataclass(frozen=True, slots=True)
class Expression:
    """What one subscription to a topic lets through. `kind` TAG or "": tags; else a condition on properties."""

    text: str
    kind: str = TAG

    @property
    def is_on_properties(self) -> bool:
        """Returns whether the tag alone does not tell."""
        return self.kind not in ("", TAG)


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Of a topic: how many of the messages that were judged no subscription of the group lets through."""

    topic: str
    count: int
    judged_count: int


@dataclass(frozen=True, slots=True)
class Filtered:
    """`unwanted`: tags that no subscription of the group to their topic has. `unmatched`: topics from which it chooses
    by properties, with messages that have others. `unclear`: of these topics nothing could be judged."""

    unwanted: tuple[OriginTag, ...] = ()
    unmatched: tuple[Unmatched, ...] = ()
    unclear: tuple[str, ...] = ()


NOTHING_FILTERED = Filtered()


def chosen_by_properties(wanted: Mapping[str, Sequence[Expression]], topics: Iterable[str]) -> list[str]:
    """Returns those of the topics from which the group chooses by properties."""
    return [topic for topic in topics if any(one.is_on_properties for one in wanted.get(topic, ()))]


def filtered(
    tags: Iterable[OriginTag], messages: Iterable[OriginProperties], wanted: Mapping[str, Sequence[Expression]]
) -> Filtered:
    """Returns what would be filtered of these; `wanted`: expressions by topic. None for a topic is another matter.

    `messages`: some of each topic that the group chooses from by properties.
    """
    by_properties = set(chosen_by_properties(wanted, wanted))
    judged, kept_out = _judged([one for one in messages if one.topic in by_properties], wanted)
    tags = list(tags)
    return Filtered(
        unwanted=tuple(
            one
            for one in tags
            if one.topic not in by_properties
            and (expressions := wanted.get(one.topic))
            and not any(_lets_tag_through(expression.text, one.tag) for expression in expressions)
        ),
        unmatched=tuple(Unmatched(topic, kept_out[topic], judged[topic]) for topic in sorted(kept_out)),
        unclear=tuple(sorted({one.topic for one in tags} & by_properties - judged.keys())),
    )


def _judged(
    messages: Iterable[OriginProperties], wanted: Mapping[str, Sequence[Expression]]
) -> tuple[Counter[str], Counter[str]]:
    """Returns by topic how many could be judged, and how many of them nothing lets through."""
    judged: Counter[str] = Counter()
    kept_out: Counter[str] = Counter()
    judges: dict[str, list[Judge] | None] = {}
    for one in messages:
        if one.topic not in judges:
            judges[one.topic] = _judges(wanted[one.topic])
        if (own := judges[one.topic]) is not None:
            judged[one.topic] += 1
            if not any(judge(one) for judge in own):
                kept_out[one.topic] += 1
    return judged, kept_out


def _judges(expressions: Iterable[Expression]) -> list[Judge] | None:
    """Returns None where an expression cannot be read here."""
    try:
        return [_by_properties(one) if one.is_on_properties else _by_tag(one.text) for one in expressions]
    except MessageError:
        return None


def _by_properties(expression: Expression) -> Judge:
    """Raises MessageError where it is no SQL92 expression."""
    if expression.kind != SQL92:
        raise MessageError(f"expressions of the kind {expression.kind} are not known here")
    condition = PropertyFilter(expression.text)

    def judge(message: OriginProperties) -> bool:
        return condition.matches(TEXT_START + encode_properties(message.properties).encode())

    return judge


def _by_tag(text: str) -> Judge:
    def judge(message: OriginProperties) -> bool:
        return _lets_tag_through(text, message.properties.get(Property.TAGS, ""))

    return judge


def _lets_tag_through(text: str, tag: str) -> bool:
    try:
        return parse_tags(text).matches(tag)
    except MessageError:
        return False
