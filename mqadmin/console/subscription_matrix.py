"""The subscriptions of a group as a table of member × topic, and where its members subscribe differently.

Two questions. The table answers who does not get what it asked for: the broker filters by one subscription per topic
for the whole group, so each member's own is compared with that. The lines below it answer who differs from whom, and
since when: they are the broker's own record of conflicts between members (`Member.differences`), sorted. One does not
follow from the other: the broker may still filter by the subscription of a member that has left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils.translation import gettext, ngettext

from mqadmin.clusters.figures import SubscriptionDifference
from mqadmin.clusters.models import Member, Subscription
from remoting.wire.names import is_retry_topic

# The client id of the subscription that the broker keeps for the whole group.
WHOLE_GROUP = ""
NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cell:
    """`expression` "": not subscribed."""

    expression: str
    is_different: bool


@dataclass(frozen=True, slots=True)
class MatrixRow:
    client_id: str
    cells: list[Cell]
    since: datetime

    @property
    def is_different(self) -> bool:
        return any(cell.is_different for cell in self.cells)


@dataclass(frozen=True, slots=True)
class SubscriptionMatrix:
    topics: list[str]
    rows: list[MatrixRow]
    summary: str

    @property
    def is_different(self) -> bool:
        return any(row.is_different for row in self.rows)


def subscription_matrix(subscriptions: Sequence[Subscription]) -> SubscriptionMatrix:
    """Returns the table: the whole group's row first, then members by client id; the retry topic's column last."""
    topics = sorted({row.topic_name for row in subscriptions}, key=lambda name: (is_retry_topic(name), name))
    by_client: defaultdict[str, dict[str, Subscription]] = defaultdict(dict)
    for row in subscriptions:
        by_client[row.client_id][row.topic_name] = row
    brokers = by_client.get(WHOLE_GROUP)
    rows = [_row(client_id, by_client[client_id], topics, brokers) for client_id in sorted(by_client)]
    return SubscriptionMatrix(topics, rows, _summary(rows, is_broker_known=brokers is not None))


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


def _row(
    client_id: str, own: dict[str, Subscription], topics: list[str], brokers: dict[str, Subscription] | None
) -> MatrixRow:
    expressions = _expressions(own, topics)
    expected = expressions if brokers is None else _expressions(brokers, topics)
    return MatrixRow(
        client_id,
        [Cell(mine, is_different=mine != theirs) for mine, theirs in zip(expressions, expected, strict=True)],
        min(row.first_seen_at for row in own.values()),
    )


def _expressions(subscriptions: dict[str, Subscription], topics: list[str]) -> list[str]:
    return [subscriptions[topic].expression if topic in subscriptions else "" for topic in topics]


def _summary(rows: list[MatrixRow], *, is_broker_known: bool) -> str:
    members = [row for row in rows if row.client_id != WHOLE_GROUP]
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
