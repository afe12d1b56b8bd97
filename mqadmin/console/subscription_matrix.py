"""The subscriptions of a group as a table of member × topic, and where its members want different things.

Each cell is what a member subscribes to and the version of that. Marked is the odd one: a member that wants something
else than most, by what `consistency` finds; where no subscription has a majority, all. Who does not get what it asked
for is another matter and noted beside: the broker filters by one subscription per topic for the whole group, and may
still filter by that of a member that has left. The lines below the table are the broker's own record of conflicts
between members (`Member.differences`), sorted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils.translation import gettext, ngettext

from mqadmin.clusters.figures import SubscriptionDifference
from mqadmin.clusters.models import Member
from mqadmin.subscriptions.consistency import Finding, MemberView, Source, Wanted
from mqadmin.subscriptions.selectors import ComparedGroup
from mqadmin.subscriptions.views_of_members import WHOLE_GROUP
from remoting.wire.names import is_retry_topic

# Topics that a sentence names.
NAMED_MAX = 3
NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cell:
    """`expression` "": not subscribed; None: not known. `sub_version` 0: not told.

    `is_odd`: most members want something else, or nothing has a majority. `is_in_force`: of members that contradict
    each other it is this one's version by which the broker filters; `is_unlike_broker`: it filters by something else.
    """

    expression: str | None
    sub_version: int = 0
    is_odd: bool = False
    is_in_force: bool = False
    is_unlike_broker: bool = False


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """`source`: how it is known what the member wants, and `seen_at` when; `reason`: why it did not answer."""

    client_id: str
    cells: list[Cell]
    since: datetime | None
    source: str = ""
    seen_at: datetime | None = None
    reason: str = ""

    @property
    def is_odd(self) -> bool:
        return any(cell.is_odd for cell in self.cells)

    @property
    def is_unlike_broker(self) -> bool:
        return any(cell.is_unlike_broker for cell in self.cells)

    @property
    def is_known(self) -> bool:
        return self.source != Source.NOT_KNOWN


@dataclass(frozen=True, slots=True)
class SubscriptionMatrix:
    topics: list[str]
    rows: list[MatrixRow]
    summary: str

    @property
    def is_different(self) -> bool:
        return any(row.is_odd or row.is_unlike_broker for row in self.rows)


def subscription_matrix(found: ComparedGroup) -> SubscriptionMatrix:
    """Returns the table: the whole group's row first, then members by client id; the retry topic's column last."""
    table, members = found.view.table, found.view.members
    named = {*table, *(topic for member in members for topic in member.topics or ())}
    topics = sorted(named, key=lambda name: (is_retry_topic(name), name))
    marks = odd_cells(found.findings)
    rows = [_member_row(member, topics, table, marks, found.reasons) for member in members]
    summary = _summary(rows, tied_topics(found.findings), is_broker_known=bool(table))
    if table:
        cells = [Cell(_expression(table, topic), _version(table, topic)) for topic in topics]
        rows.insert(0, MatrixRow(WHOLE_GROUP, cells, _since(table)))
    return SubscriptionMatrix(topics, rows, summary)


def odd_cells(findings: Iterable[Finding]) -> set[tuple[str, str]]:
    """Returns whose subscription to which topic is marked: client id, topic."""
    return {(client_id, found.topic) for found in findings if found.topic for client_id in found.marked}


def tied_topics(findings: Iterable[Finding]) -> list[str]:
    """Returns the topics of which no subscription has a majority."""
    return sorted({found.topic for found in findings if found.topic and found.is_tie})


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """One entry of what the broker remembers of a member that subscribed otherwise than others of its group."""

    client_id: str
    difference: SubscriptionDifference


def difference_lines(members: Sequence[Member]) -> list[DifferenceLine]:
    """Returns what lasts before what is over, each with the latest first."""
    lines = [
        DifferenceLine(member.client_id, difference)
        for member in members
        for difference in member.subscription_differences
    ]
    lines.sort(key=lambda line: (line.difference.last_seen_at or NEVER, line.client_id), reverse=True)
    return sorted(lines, key=lambda line: line.difference.is_over)


def _member_row(
    member: MemberView,
    topics: Sequence[str],
    table: Mapping[str, Wanted],
    marks: Collection[tuple[str, str]],
    reasons: Mapping[str, str],
) -> MatrixRow:
    own = member.topics
    contradicted = {topic for _, topic in marks}

    def cell(topic: str) -> Cell:
        if own is None:
            return Cell(None)
        is_alike = _meaning(own, topic) == _meaning(table, topic)
        return Cell(
            _expression(own, topic),
            _version(own, topic),
            is_odd=(member.client_id, topic) in marks,
            is_in_force=topic in contradicted & table.keys()
            and is_alike
            and _version(own, topic) == _version(table, topic),
            is_unlike_broker=bool(table) and not is_alike,
        )

    return MatrixRow(
        client_id=member.client_id,
        cells=[cell(topic) for topic in topics],
        since=_since(own or {}),
        source=member.source,
        seen_at=member.seen_at,
        reason=reasons.get(member.client_id, ""),
    )


def _expression(wanted: Mapping[str, Wanted], topic: str) -> str:
    return (wanted[topic].expression or "*") if topic in wanted else ""


def _version(wanted: Mapping[str, Wanted], topic: str) -> int:
    return wanted[topic].sub_version if topic in wanted else 0


def _meaning(wanted: Mapping[str, Wanted], topic: str) -> str:
    return wanted[topic].meaning if topic in wanted else ""


def _since(wanted: Mapping[str, Wanted]) -> datetime | None:
    return min((one.since for one in wanted.values() if one.since is not None), default=None)


def _summary(rows: Sequence[MatrixRow], tied: Sequence[str], *, is_broker_known: bool) -> str:
    members = [row for row in rows if row.is_known]
    if not members:
        return gettext("The subscription that the broker uses. The members' own subscriptions are not known.")
    if tied:
        return gettext(
            "No subscription to %(topics)s is in the majority, so it is not known which is wrong: all are marked."
        ) % {"topics": ", ".join(tied[:NAMED_MAX]) + (" …" if len(tied) > NAMED_MAX else "")}
    if odd := sum(row.is_odd for row in members):
        return ngettext(
            "%(odd)d of %(n)d members wants something else than most of them, and is marked.",
            "%(odd)d of %(n)d members want something else than most of them, and are marked.",
            odd,
        ) % {"odd": odd, "n": len(members)}
    if not is_broker_known:
        return gettext("The members' own subscriptions. The one that the broker uses for the group is not known.")
    differing = sum(row.is_unlike_broker for row in members)
    if not differing:
        return ngettext(
            "The one member and the broker have the same subscription.",
            "All %(n)d members and the broker have the same subscription.",
            len(members),
        ) % {"n": len(members)}
    return ngettext(
        "%(differing)d of %(n)d members subscribed to something else than the broker uses. The broker keeps one "
        "subscription for the whole group and filters by it, so that member does not get what it asked for.",
        "%(differing)d of %(n)d members subscribed to something else than the broker uses. The broker keeps one "
        "subscription for the whole group and filters by it, so those members do not get what they asked for.",
        differing,
    ) % {"differing": differing, "n": len(members)}
