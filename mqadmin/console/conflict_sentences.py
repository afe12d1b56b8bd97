"""What members of a group that do not want the same differ in, what it causes, and what to do: sentences for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, assert_never

from django.utils.translation import gettext, ngettext

from mqadmin.console.figures import count_text
from mqadmin.subscriptions.consistency import Finding, FindingKind
from mqadmin.subscriptions.models import GroupConflict
from mqadmin.subscriptions.skipped import Skipped, SkippedMethod

# Members that a sentence names; of more it says how many.
NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class ConflictLine:
    what: str
    causes: str
    remedy: str
    since: datetime | None
    skipped: str = ""


def conflict_lines(findings: Sequence[Finding], skipped: Sequence[Skipped]) -> list[ConflictLine]:
    """`skipped`: what each of the findings has skipped."""
    lines = ((_LINES[found.kind](found), found, of_it) for found, of_it in zip(findings, skipped, strict=True))
    return [replace(line, skipped=_skipped(found, of_it)) for line, found, of_it in lines]


def _skipped(found: Finding, of_it: Skipped) -> str:
    """Says how many messages were skipped so far, and how that is known."""
    match of_it.method:
        case SkippedMethod.PROGRESS_PASSED:
            text = gettext(
                "At most %(count)s messages of %(topic)s: so many did the group’s progress pass since. Those among "
                "them that matched were consumed; brokers do not count the others, so the number itself is not known."
            )
            said = text % {"count": count_text(of_it.at_most or 0), "topic": found.topic}
            return f"{said} {_moved_back(of_it.moved_back_count)}".strip()
        case SkippedMethod.WAITS:
            return gettext(
                "None where the group has committed an offset: what nobody reads waits, and is lag. On a queue "
                "without one, what came before the first member reads it may never be read."
            )
        case SkippedMethod.NOTHING_SKIPPED:
            return gettext("None: members differ in how they consume, not in what.")
        case SkippedMethod.NOT_KNOWN:
            return gettext("Not known: the brokers do not count what is skipped, and progress does not tell it here.")
        case _:
            assert_never(of_it.method)


def _moved_back(count: int) -> str:
    if not count:
        return ""
    return ngettext(
        "An offset was moved back meanwhile: what was passed again counts again, and what was passed between the two "
        "samples of that moment is not in it.",
        "Offsets were moved back %(n)d times meanwhile: what was passed again counts again, and what was passed "
        "between the two samples of such a moment is not in it.",
        count,
    ) % {"n": count}


def conflict_reason(row: GroupConflict) -> str:
    """Returns the sentence of the overview."""
    values = {"odd": row.odd_count, "n": row.member_count, "topic": row.topic_name}
    return _REASONS[FindingKind(row.kind)]() % values


def _line(found: Finding, what: str, causes: str, remedy: str) -> ConflictLine:
    values: dict[str, Any] = {
        "odd": len(found.odd),
        "n": found.member_count,
        "who": _names(found.odd),
        "topic": found.topic,
        "theirs": found.by_odd,
        "rest": found.by_rest,
        "in_force": found.in_force,
        "winner": found.winner,
    }
    if found.is_tie:
        what = f"{what} " + gettext(
            "No side is in the majority, so it is not known which is wrong: the one that was there first is not named."
        )
    return ConflictLine(what % values, causes % values, remedy % values, found.since)


def _names(client_ids: tuple[str, ...]) -> str:
    named = ", ".join(client_ids[:NAMED_MAX])
    more = len(client_ids) - NAMED_MAX
    if more <= 0:
        return named
    return ngettext("%(named)s and %(n)d more", "%(named)s and %(n)d more", more) % {"named": named, "n": more}


def _topics(found: Finding) -> ConflictLine:
    if found.by_odd:
        what = gettext("%(odd)d of %(n)d members read topic %(topic)s, the others do not: %(who)s.")
    else:
        what = gettext("%(odd)d of %(n)d members do not read topic %(topic)s: %(who)s.")
    return _line(
        found,
        what,
        gettext(
            "The queues of %(topic)s are shared out among all %(n)d members; those that do not read it leave "
            "their share unread. And the broker keeps one table of topics for the group, which each heartbeat "
            "replaces: it has %(topic)s and forgets it in turn, with a rebalance each time."
        ),
        gettext(
            "Let all members subscribe to the same topics, or give those that want other topics a group of their own."
        ),
    )


def _expression(found: Finding) -> ConflictLine:
    what = gettext(
        "%(odd)d of %(n)d members subscribe to “%(theirs)s” of topic %(topic)s, the others to “%(rest)s”: %(who)s."
    )
    if not found.in_force:
        causes = gettext("The broker filters by one expression for the whole group: that of the newest subscription.")
    elif found.winner:
        causes = gettext(
            "The broker filters by one expression for the whole group, that of the newest subscription: now "
            "“%(in_force)s”, from %(winner)s. What does not match it is skipped for all members, and their "
            "progress passes it: nobody gets it later."
        )
    else:
        causes = gettext(
            "The broker filters by one expression for the whole group: now “%(in_force)s”, from a member that "
            "has left. What does not match it is skipped for all members, and their progress passes it: "
            "nobody gets it later."
        )
    return _line(
        found,
        what,
        causes,
        gettext(
            "Deploy one expression to all members, or a group for each. Then reset the group to the time at "
            "which it began, where what was skipped is wanted."
        ),
    )


def _model(found: Finding) -> ConflictLine:
    return _line(
        found,
        gettext("%(odd)d of %(n)d members consume as %(theirs)s, the others as %(rest)s: %(who)s."),
        gettext(
            "Members that consume as BROADCASTING read all queues for themselves; the others still give them "
            "a share, which is then nobody's progress: messages are consumed several times, or the group's "
            "lag never ends."
        ),
        gettext("Give the members that broadcast a group of their own."),
    )


def _order(found: Finding) -> ConflictLine:
    words = {"orderly": gettext("in order"), "concurrently": gettext("concurrently")}
    return _line(
        replace(found, by_odd=words[found.by_odd], by_rest=words[found.by_rest]),
        gettext("%(odd)d of %(n)d members consume %(theirs)s, the others %(rest)s: %(who)s."),
        gettext(
            "Members that consume in order lock their queues at the broker; the others do not ask for the "
            "lock. A queue that moves between them is consumed by both for a while, and order is lost."
        ),
        gettext("Let all members of the group consume in the same way."),
    )


def _start(found: Finding) -> ConflictLine:
    return _line(
        found,
        gettext(
            "%(odd)d of %(n)d members begin at %(theirs)s where nothing is committed, the others at %(rest)s: %(who)s."
        ),
        gettext("Where a new queue is read from depends on which member gets it."),
        gettext("Let all members begin at the same place."),
    )


_LINES: Mapping[FindingKind, Callable[[Finding], ConflictLine]] = {
    FindingKind.TOPICS: _topics,
    FindingKind.EXPRESSION: _expression,
    FindingKind.MODEL: _model,
    FindingKind.ORDER: _order,
    FindingKind.START: _start,
}

_REASONS: Mapping[FindingKind, Callable[[], str]] = {
    FindingKind.TOPICS: lambda: gettext("%(odd)d of %(n)d members differ in whether they read topic %(topic)s."),
    FindingKind.EXPRESSION: lambda: gettext("%(odd)d of %(n)d members subscribe otherwise to topic %(topic)s."),
    FindingKind.MODEL: lambda: gettext("%(odd)d of %(n)d members differ in broadcasting."),
    FindingKind.ORDER: lambda: gettext("%(odd)d of %(n)d members differ in consuming in order."),
    FindingKind.START: lambda: gettext("%(odd)d of %(n)d members begin elsewhere where nothing is committed."),
}
