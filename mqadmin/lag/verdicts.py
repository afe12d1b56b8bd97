"""Judges a group: the first rule that holds gives the verdict, with the numbers behind it (as LinkedIn's Burrow does).

The table is the specification. A rule reads VerdictInput, never the clock or the database. Stored are the name of the
rule and its numbers; `reason` makes the sentence when a page is rendered, in the reader's language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mqadmin.clusters.models import VERDICT_RANKS, Verdict

# Commits come every 5 s: a queue that stands a minute with messages waiting has missed twelve.
STALLED_AFTER_S = 60
# Growth is judged over this much of the past, and only when a message waits this long.
GROWTH_WINDOW_S = 300
SLOW_AFTER_S = 60
# Less growth than this is the ordinary up and down.
GROWTH_RATIO_MIN = 1.1
GROWTH_MESSAGES_MIN = 10
QUIET_AFTER_S = 600
# The name of a rule, by which its groups are found again.
BROKER_AWAY = "broker_away"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictInput:
    """What is known of a group at `now`; None where it is not.

    `is_any_broker_away`: a broker that holds some of its queues does not answer. `behind_since`: since when the
    longest-waiting next message has been waiting. `standing_since`: since when some queue has had messages waiting
    while its committed offset stood. `lag_before`: lag GROWTH_WINDOW_S ago.
    """

    now: datetime
    is_broadcast: bool = False
    member_count: int | None = None
    lag: int | None = None
    lag_before: int | None = None
    behind_since: datetime | None = None
    standing_since: datetime | None = None
    moved_at: datetime | None = None
    is_any_broker_away: bool = False

    @property
    def behind_s(self) -> float:
        return _seconds_since(self.behind_since, self.now)

    @property
    def standing_s(self) -> float:
        return _seconds_since(self.standing_since, self.now)

    @property
    def is_waiting(self) -> bool:
        return self.lag is not None and self.lag > 0

    @property
    def is_growing(self) -> bool:
        if self.lag is None or self.lag_before is None:
            return False
        return self.lag >= max(self.lag_before * GROWTH_RATIO_MIN, self.lag_before + GROWTH_MESSAGES_MIN)

    @property
    def is_at_rest(self) -> bool:
        return self.moved_at is None or _seconds_since(self.moved_at, self.now) >= QUIET_AFTER_S


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    verdict: Verdict
    holds: Callable[[VerdictInput], bool]


RULES: tuple[Rule, ...] = (
    Rule("broadcast", Verdict.UNKNOWN, lambda group: group.is_broadcast),
    Rule("no_offsets", Verdict.UNKNOWN, lambda group: group.lag is None),
    Rule("nobody_online_waiting", Verdict.STOPPED, lambda group: group.member_count == 0 and group.is_waiting),
    Rule("nobody_online", Verdict.QUIET, lambda group: group.member_count == 0),
    Rule("members_not_known", Verdict.UNKNOWN, lambda group: group.member_count is None and group.is_waiting),
    Rule("offset_stands", Verdict.STALLED, lambda group: group.standing_s >= STALLED_AFTER_S),
    Rule(BROKER_AWAY, Verdict.UNKNOWN, lambda group: group.is_any_broker_away),
    Rule("lag_grows", Verdict.SLOW, lambda group: group.behind_s >= SLOW_AFTER_S and group.is_growing),
    Rule("catching_up", Verdict.OK, lambda group: group.behind_s >= SLOW_AFTER_S),
    Rule("no_traffic", Verdict.QUIET, lambda group: not group.is_waiting and group.is_at_rest),
    Rule("keeps_up", Verdict.OK, lambda group: group.lag is not None),
)


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    rule: str
    numbers: dict[str, Any]

    @property
    def rank(self) -> int:
        return VERDICT_RANKS[self.verdict]


def judge(group: VerdictInput) -> Judgement:
    rule = next(rule for rule in RULES if rule.holds(group))
    return Judgement(rule.verdict, rule.name, _numbers(group))


def reason(rule: str, numbers: dict[str, Any]) -> str:
    """Returns the verdict's reason as one sentence for people; "" for a group that was never judged."""
    members, lag = numbers.get("members") or 0, numbers.get("lag") or 0
    texts: dict[str, Callable[[], str]] = {
        "broadcast": lambda: _("Broadcasting: each member keeps its own offsets; the broker has none."),
        "no_offsets": lambda: _("No committed offset is known."),
        "nobody_online_waiting": lambda: (
            ngettext("No member is online; %(lag)s message waits.", "No member is online; %(lag)s messages wait.", lag)
            % {"lag": f"{lag:,}"}
        ),
        "nobody_online": lambda: _("No member is online, and no messages wait."),
        "members_not_known": lambda: _("Messages wait; whether members are online is not known."),
        "offset_stands": lambda: (
            ngettext(
                "Messages wait on a queue whose committed offset has not moved, though %(members)d member is online.",
                "Messages wait on a queue whose committed offset has not moved, though %(members)d members are online.",
                members,
            )
            % {"members": members}
        ),
        BROKER_AWAY: lambda: _("A broker that holds some of its queues does not answer."),
        "lag_grows": lambda: (
            _("Lag grew from %(before)s to %(lag)s in 5 minutes.")
            % {"before": f"{numbers.get('lag_before') or 0:,}", "lag": f"{lag:,}"}
        ),
        "catching_up": lambda: _("Behind, but the lag is not growing."),
        "no_traffic": lambda: _("No messages arrived lately."),
        "keeps_up": lambda: _("Keeps up with its producers."),
    }
    text = texts.get(rule)
    return text() if text else ""


def _numbers(group: VerdictInput) -> dict[str, Any]:
    return {"members": group.member_count, "lag": group.lag, "lag_before": group.lag_before}


def _seconds_since(moment: datetime | None, now: datetime) -> float:
    return (now - moment).total_seconds() if moment else 0.0
