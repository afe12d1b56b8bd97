"""The subscriptions of a group as a table of member × topic, and where its members want different things.

The table answers who does not get what it asked for: the broker filters by one subscription per topic for the whole
group, so each member's own is compared with that. The lines below it are the broker's own record of conflicts between
members (`Member.differences`), sorted: it may still filter by the subscription of a member that has left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils.translation import gettext, ngettext

from mqadmin.clusters.figures import SubscriptionDifference
from mqadmin.clusters.models import Member
from mqadmin.subscriptions.consistency import MemberView, Source, Wanted
from mqadmin.subscriptions.selectors import ComparedGroup
from mqadmin.subscriptions.views_of_members import WHOLE_GROUP
from remoting.wire.names import is_retry_topic

NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cell:
    """`expression` "": not subscribed; None: not known."""

    expression: str | None
    is_different: bool


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
    def is_different(self) -> bool:
        return any(cell.is_different for cell in self.cells)

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
        return any(row.is_different for row in self.rows)


def subscription_matrix(found: ComparedGroup) -> SubscriptionMatrix:
    """Returns the table: the whole group's row first, then members by client id; the retry topic's column last."""
    table, members = found.view.table, found.view.members
    named = {*table, *(topic for member in members for topic in member.topics or ())}
    topics = sorted(named, key=lambda name: (is_retry_topic(name), name))
    rows = [_member_row(member, topics, table, found.reasons) for member in members]
    summary = _summary(rows, is_broker_known=bool(table))
    if table:
        rows.insert(
            0, MatrixRow(WHOLE_GROUP, [Cell(_expression(table, topic), False) for topic in topics], _since(table))
        )
    return SubscriptionMatrix(topics, rows, summary)


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
    member: MemberView, topics: Sequence[str], table: Mapping[str, Wanted], reasons: Mapping[str, str]
) -> MatrixRow:
    own = member.topics
    return MatrixRow(
        client_id=member.client_id,
        cells=[
            Cell(
                None if own is None else _expression(own, topic),
                is_different=bool(table) and own is not None and _meaning(own, topic) != _meaning(table, topic),
            )
            for topic in topics
        ],
        since=_since(own or {}),
        source=member.source,
        seen_at=member.seen_at,
        reason=reasons.get(member.client_id, ""),
    )


def _expression(wanted: Mapping[str, Wanted], topic: str) -> str:
    return (wanted[topic].expression or "*") if topic in wanted else ""


def _meaning(wanted: Mapping[str, Wanted], topic: str) -> str:
    return wanted[topic].meaning if topic in wanted else ""


def _since(wanted: Mapping[str, Wanted]) -> datetime | None:
    return min((one.since for one in wanted.values() if one.since is not None), default=None)


def _summary(rows: Sequence[MatrixRow], *, is_broker_known: bool) -> str:
    members = [row for row in rows if row.is_known]
    if not members:
        return gettext("The subscription that the broker uses. The members' own subscriptions are not known.")
    if not is_broker_known:
        return gettext("The members' own subscriptions. The one that the broker uses for the group is not known.")
    differing = sum(row.is_different for row in members)
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
