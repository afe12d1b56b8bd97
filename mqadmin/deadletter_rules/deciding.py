"""What a rule does with dead letters now. Pure: rule, moment and facts in, decision out.

Dead letters are looked at in the order in which they were indexed. One that is not old enough ends the look: those
behind it are younger, or wait a little longer than they must.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from django.db.models import TextChoices
from django.utils.translation import pgettext_lazy

HOURS_OF_DAY = 24


class Does(TextChoices):
    """What a rule does."""

    REPLAY = "replay", pgettext_lazy("rule", "replay to the failed group")
    ARCHIVE = "archive", pgettext_lazy("rule", "archive")
    RAISE = "raise", pgettext_lazy("rule", "raise on the overview")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`identity` is that of one failure, "" for all that match the patterns; a pattern "" matches everything.

    `from_hour` and `to_hour` are hours of the day in `zone`; equal: all day. `taken_max`: of one decision.
    """

    group: str
    does: Does
    identity: str = ""
    class_pattern: str = ""
    text_pattern: str = ""
    after: timedelta = timedelta(0)
    times_max: int = 1
    from_hour: int = 0
    to_hour: int = 0
    zone: str = "UTC"
    taken_max: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A dead letter, as far as a rule judges it. `message_id` stays the same when it dies again."""

    id: int
    group: str
    message_id: str
    dead_at: datetime
    identity: str
    failure_class: str
    failure_text: str
    is_archived: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """`taken` are acted on; `given_up` were replayed as often as they may be. Up to `reached` all are settled."""

    taken: tuple[int, ...]
    given_up: tuple[int, ...]
    reached: int
    is_outside_hours: bool = False


def decide(rule: Rule, now: datetime, facts: Sequence[Fact], counts: Mapping[str, int], reached: int) -> Decision:
    """Judges dead letters in order; `counts`: how often the rule has replayed each message, by its id."""
    if not is_within_hours(rule, now):
        return Decision((), (), reached, is_outside_hours=True)
    taken: list[int] = []
    given_up: list[int] = []
    present: Counter[str] = Counter()
    for fact in facts:
        if matches(rule, fact):
            if fact.dead_at > now - rule.after or len(taken) == rule.taken_max:
                break
            if rule.does == Does.REPLAY and counts.get(fact.message_id, 0) + present[fact.message_id] >= rule.times_max:
                given_up.append(fact.id)
            else:
                present[fact.message_id] += 1
                taken.append(fact.id)
        reached = fact.id
    return Decision(tuple(taken), tuple(given_up), reached)


def matches(rule: Rule, fact: Fact) -> bool:
    """Returns whether the rule is about the dead letter. What somebody archived is left alone."""
    return (
        fact.group == rule.group
        and not fact.is_archived
        and is_about(rule, fact.identity, fact.failure_class, fact.failure_text)
    )


def is_about(rule: Rule, identity: str, failure_class: str, failure_text: str) -> bool:
    """Returns whether the rule is about what dies of that."""
    return (
        rule.identity in ("", identity)
        and (not rule.class_pattern or fnmatchcase(failure_class, rule.class_pattern))
        and (not rule.text_pattern or fnmatchcase(failure_text, rule.text_pattern))
    )


def is_within_hours(rule: Rule, now: datetime) -> bool:
    """22 to 6 is the night; 8 to 18 ends when it strikes 18."""
    if rule.from_hour == rule.to_hour:
        return True
    hour = now.astimezone(ZoneInfo(rule.zone)).hour
    return (hour - rule.from_hour) % HOURS_OF_DAY < (rule.to_hour - rule.from_hour) % HOURS_OF_DAY
