"""Do all members of a group want the same? Member × topic × expression, the odd ones marked.

RocketMQ's broker keeps one expression per topic for the whole group: where a member asks for another one, the broker
still filters by its own, and the member misses messages. So each member is held against what the broker keeps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext, ngettext

from mqadmin.clusters.shapes import SubscriptionRow
from remoting.wire.names import is_retry_topic

# what the broker keeps for the whole group has no client
WHOLE_GROUP = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """`expression` "": not subscribed."""

    expression: str
    is_odd: bool


@dataclass(frozen=True, slots=True)
class MatrixRow:
    client_id: str
    cells: list[Cell]
    since: datetime

    @property
    def is_odd(self) -> bool:
        return any(cell.is_odd for cell in self.cells)


@dataclass(frozen=True, slots=True)
class SubscriptionMatrix:
    topics: list[str]
    rows: list[MatrixRow]
    words: str

    @property
    def is_odd(self) -> bool:
        return any(row.is_odd for row in self.rows)


def subscription_matrix(subscriptions: Sequence[SubscriptionRow]) -> SubscriptionMatrix:
    """The whole group's row first, then members by client id; the retry topic's column last."""
    topics = sorted({row.topic_name for row in subscriptions}, key=lambda name: (is_retry_topic(name), name))
    by_client: defaultdict[str, dict[str, SubscriptionRow]] = defaultdict(dict)
    for row in subscriptions:
        by_client[row.client_id][row.topic_name] = row
    kept = by_client.get(WHOLE_GROUP)
    rows = [_row(client_id, by_client[client_id], topics, kept) for client_id in sorted(by_client)]
    return SubscriptionMatrix(topics, rows, _words(rows, is_kept_known=kept is not None))


def _row(
    client_id: str, wanted: dict[str, SubscriptionRow], topics: list[str], kept: dict[str, SubscriptionRow] | None
) -> MatrixRow:
    expressions = [wanted[topic].expression if topic in wanted else "" for topic in topics]
    expected = expressions if kept is None else [kept[topic].expression if topic in kept else "" for topic in topics]
    return MatrixRow(
        client_id,
        [Cell(mine, is_odd=mine != theirs) for mine, theirs in zip(expressions, expected, strict=True)],
        min(row.first_seen_at for row in wanted.values()),
    )


def _words(rows: list[MatrixRow], *, is_kept_known: bool) -> str:
    members = [row for row in rows if row.client_id != WHOLE_GROUP]
    if not members:
        return gettext("What the broker keeps for the group. What each member asks for is not known.")
    if not is_kept_known:
        return gettext("What members ask for. What the broker keeps for the whole group is not known.")
    odd = sum(row.is_odd for row in members)
    if not odd:
        return ngettext(
            "The one member asks for what the broker keeps.",
            "All %(n)d members ask for the same, and the broker keeps it so.",
            len(members),
        ) % {"n": len(members)}
    return ngettext(
        "%(odd)d of %(n)d members asks for something else than the broker keeps. The broker filters by its own table, "
        "so that member misses messages.",
        "%(odd)d of %(n)d members ask for something else than the broker keeps. The broker filters by its own table, "
        "so those members miss messages.",
        odd,
    ) % {"odd": odd, "n": len(members)}
