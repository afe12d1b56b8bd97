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
from mqadmin.lag.failing import NOTHING_FAILS, Failing
from mqadmin.lag.failing import WINDOW_S as FAILING_WINDOW_S
from mqadmin.lag.in_flight import STANDS_S, InFlight
from mqadmin.objectives.values import DEFAULT_LAG_S

# Commits come every 5 s: a queue that stands a minute with messages waiting has missed twelve.
STALLED_AFTER_S = STANDS_S
# Growth is judged over this much of the past, and only when a message waits longer than is allowed.
GROWTH_WINDOW_S = 300
# A group that was STALLED or SLOW is that until the rules have said better for so long, or nothing waits any more.
SETTLE_S = 60
# Less growth than this is the ordinary up and down.
GROWTH_RATIO_MIN = 1.1
GROWTH_MESSAGES_MIN = 10
QUIET_AFTER_S = 600
# Fewer retries than this in ten minutes are single messages that fail; half of them must have come in each half, so
# that one burst, or a replay, is none.
RETRIED_MIN = 10
RETRIED_IN_EACH_HALF_MIN = RETRIED_MIN // 2
# So many retries for each message consumed: every tenth attempt fails. Once FAILING, half of it is enough to stay so.
RETRIED_RATIO_MIN = 0.1
RETRIED_RATIO_STAYS = 0.05
# The name of a rule, by which its groups are found again.
BROKER_AWAY = "broker_away"
# Given by no rule: see `settled`.
SETTLING = "settling"
# Of a queue that counts as no lag (`queue_verdicts.py`).
NOT_SUBSCRIBED = "not_subscribed"
# What does not at once become what is better, by what was.
_SETTLES = {
    Verdict.STALLED: (Verdict.OK, Verdict.QUIET),
    Verdict.SLOW: (Verdict.OK, Verdict.QUIET, Verdict.BUSY),
    Verdict.BUSY: (Verdict.OK, Verdict.QUIET),
    Verdict.FAILING: (Verdict.OK, Verdict.QUIET),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictInput:
    """What is known of a group at `now`; None where it is not.

    `is_broadcast`: each member has offsets of its own; the others are those of the one that is furthest behind.
    `is_any_broker_away`: a broker that holds some of its queues does not answer. `behind_since`: since when the
    longest-waiting next message has been waiting, as far as was seen at `seen_until` (None: now). `standing_since`:
    since when some queue has had messages waiting while its committed offset stood. `lag_before`: lag GROWTH_WINDOW_S
    ago. `rewound_count`: messages that come again. `is_pulled` False: of one queue, that no member pulls it.
    `in_flight`: that all queues that stand do so because a listener takes long (`in_flight.py`). `failing`: how many
    died and were retried lately (`failing.py`); of one queue nothing is known of that.
    `allowed_lag_s`, `allowed_lag` (None: any number): the objective. `was`: the last verdict; what is SLOW stays so
    until the lag is no longer above what it was.
    """

    now: datetime
    is_broadcast: bool = False
    member_count: int | None = None
    lag: int | None = None
    lag_before: int | None = None
    behind_since: datetime | None = None
    seen_until: datetime | None = None
    standing_since: datetime | None = None
    moved_at: datetime | None = None
    is_any_broker_away: bool = False
    rewound_count: int = 0
    is_pulled: bool | None = None
    in_flight: InFlight | None = None
    failing: Failing = NOTHING_FAILS
    allowed_lag_s: int = DEFAULT_LAG_S
    allowed_lag: int | None = None
    was: Verdict | None = None

    @property
    def behind_s(self) -> float:
        return _seconds_since(self.behind_since, min(self.now, self.seen_until or self.now))

    @property
    def standing_s(self) -> float:
        return _seconds_since(self.standing_since, self.now)

    @property
    def is_waiting(self) -> bool:
        return self.lag is not None and self.lag > 0

    @property
    def is_standing(self) -> bool:
        return self.standing_s >= STALLED_AFTER_S

    @property
    def is_stuck(self) -> bool:
        """Tells whether an offset stands, and no listener that takes long is the reason."""
        return self.is_standing and self.in_flight is None

    @property
    def is_dying(self) -> bool:
        return self.failing.died > 0

    @property
    def is_retrying(self) -> bool:
        """Tells whether retries have kept coming for minutes, and are no few of what is consumed."""
        retried, late = self.failing.retried, self.failing.retried_late
        if self.was == Verdict.FAILING:
            return retried >= RETRIED_MIN and retried >= self.failing.consumed * RETRIED_RATIO_STAYS
        is_lasting = min(late, retried - late) >= RETRIED_IN_EACH_HALF_MIN
        return retried >= RETRIED_MIN and is_lasting and retried >= self.failing.consumed * RETRIED_RATIO_MIN

    @property
    def is_growing(self) -> bool:
        if self.lag is None or self.lag_before is None:
            return False
        if self.was == Verdict.SLOW:
            return self.lag > self.lag_before
        return self.lag >= max(self.lag_before * GROWTH_RATIO_MIN, self.lag_before + GROWTH_MESSAGES_MIN)

    @property
    def is_over_objective(self) -> bool:
        if self.lag is None:
            return False
        return self.behind_s >= self.allowed_lag_s or (self.allowed_lag is not None and self.lag > self.allowed_lag)

    @property
    def is_at_rest(self) -> bool:
        return self.moved_at is None or _seconds_since(self.moved_at, self.now) >= QUIET_AFTER_S


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    verdict: Verdict
    holds: Callable[[VerdictInput], bool]


RULES: tuple[Rule, ...] = (
    Rule("broadcast", Verdict.UNKNOWN, lambda group: group.is_broadcast and group.lag is None),
    Rule("no_offsets", Verdict.UNKNOWN, lambda group: group.lag is None),
    Rule("nobody_online_waiting", Verdict.STOPPED, lambda group: group.member_count == 0 and group.is_waiting),
    Rule("members_not_known", Verdict.UNKNOWN, lambda group: group.member_count is None and group.is_waiting),
    Rule("nobody_pulls", Verdict.STOPPED, lambda group: group.is_pulled is False and group.is_standing),
    Rule("offset_stands", Verdict.STALLED, lambda group: group.is_stuck),
    Rule("messages_die", Verdict.FAILING, lambda group: group.is_dying),
    Rule("retries_pile_up", Verdict.FAILING, lambda group: group.is_retrying),
    Rule("nobody_online", Verdict.QUIET, lambda group: group.member_count == 0),
    Rule(BROKER_AWAY, Verdict.UNKNOWN, lambda group: group.is_any_broker_away),
    Rule("rewound", Verdict.REWOUND, lambda group: group.rewound_count > 0),
    Rule("lag_grows", Verdict.SLOW, lambda group: group.is_over_objective and group.is_growing),
    Rule("listener_takes_long", Verdict.BUSY, lambda group: group.is_standing),
    Rule("catching_up", Verdict.OK, lambda group: group.is_over_objective),
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


def settled(group: VerdictInput, judged: Judgement, calm_since: datetime | None) -> tuple[Judgement, datetime | None]:
    """Returns the verdict that holds, and since when the rules would say better than it does.

    A group whose offset moves once in a while would else change its verdict with every commit.
    """
    if group.was is None or judged.verdict not in _SETTLES.get(group.was, ()) or not group.is_waiting:
        return judged, None
    since = calm_since or group.now
    if _seconds_since(since, group.now) >= SETTLE_S:
        return judged, None
    return Judgement(group.was, SETTLING, judged.numbers), since


def is_settling(verdict: Verdict | None) -> bool:
    """Returns whether this verdict influences the next one; after any other the next is as if there had been none."""
    return verdict in _SETTLES


def reason(rule: str, numbers: dict[str, Any]) -> str:
    """Returns the verdict's reason as one sentence for people; "" for a group that was never judged."""
    members, lag = numbers.get("members") or 0, numbers.get("lag") or 0
    texts: dict[str, Callable[[], str]] = {
        "broadcast": lambda: _("Broadcasting: each member keeps its own offsets, and none has said yet what they are."),
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
        "messages_die": lambda: (
            ngettext(
                "%(died)s of its messages became a dead letter in the last %(minutes)d minutes.",
                "%(died)s of its messages became dead letters in the last %(minutes)d minutes.",
                numbers.get("died") or 0,
            )
            % {"died": f"{numbers.get('died') or 0:,}", "minutes": FAILING_WINDOW_S // 60}
        ),
        "retries_pile_up": lambda: (
            _(
                "Messages fail and come again: %(retried)s retries in the last %(minutes)d minutes, "
                "%(consumed)s consumed."
            )
            % {
                "retried": f"{numbers.get('retried') or 0:,}",
                "consumed": f"{numbers.get('consumed') or 0:,}",
                "minutes": FAILING_WINDOW_S // 60,
            }
        ),
        BROKER_AWAY: lambda: _("A broker that holds some of its queues does not answer."),
        NOT_SUBSCRIBED: lambda: _("The members do not subscribe to this topic any more."),
        "nobody_pulls": lambda: _("Messages wait on a queue that no member pulls."),
        "rewound": lambda: (
            ngettext(
                "The committed offset was moved back: %(again)s message is consumed again.",
                "The committed offset was moved back: %(again)s messages are consumed again.",
                numbers.get("rewound") or 0,
            )
            % {"again": f"{numbers.get('rewound') or 0:,}"}
        ),
        SETTLING: lambda: _("Better now, and called so when that has held for a minute."),
        "lag_grows": lambda: (
            _("Lag grew from %(before)s to %(lag)s in 5 minutes.")
            % {"before": f"{numbers.get('lag_before') or 0:,}", "lag": f"{lag:,}"}
        ),
        "listener_takes_long": lambda: _listener_words(numbers),
        "catching_up": lambda: _("Behind, but the lag is not growing."),
        "no_traffic": lambda: _("No messages arrived lately."),
        "keeps_up": lambda: _("Keeps up with its producers."),
    }
    text = texts.get(rule)
    return text() if text else ""


def _listener_words(numbers: dict[str, Any]) -> str:
    count = numbers.get("in_flight") or 0
    return ngettext(
        "A listener takes long: %(count)s message is in flight, on a queue that has stood for %(stood)s of the "
        "%(timeout)s that one call may take.",
        "A listener takes long: %(count)s messages are in flight, on queues that have stood for %(stood)s of the "
        "%(timeout)s that one call may take.",
        count,
    ) % {
        "count": f"{count:,}",
        "stood": f"{numbers.get('stood_s') or 0:,} s",
        "timeout": f"{numbers.get('timeout_s') or 0:,} s",
    }


def _numbers(group: VerdictInput) -> dict[str, Any]:
    return {
        "members": group.member_count,
        "lag": group.lag,
        "lag_before": group.lag_before,
        "rewound": group.rewound_count,
        "allowed_lag_s": group.allowed_lag_s,
        **_of_failing(group.failing),
        **_of_listeners(group.in_flight),
    }


def _of_failing(found: Failing) -> dict[str, Any]:
    if not found.is_any:
        return {}
    return {"died": found.died, "retried": found.retried, "consumed": found.consumed}


def _of_listeners(found: InFlight | None) -> dict[str, Any]:
    if found is None:
        return {}
    return {"in_flight": found.message_count, "stood_s": found.stood_s, "timeout_s": found.timeout_s}


def _seconds_since(moment: datetime | None, now: datetime) -> float:
    return (now - moment).total_seconds() if moment else 0.0
