"""Rebalance events as entries of a timeline: each in words, with the queues that members gained and lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext, pgettext

from mqadmin.rebalances.models import RebalanceKind, RebalanceSource
from mqadmin.rebalances.selectors import RebalanceRow

# topic, broker, queue id
QueueKey = tuple[str, str, str]


@dataclass(slots=True)
class QueueChange:
    """The queues that one member gained and lost. `client_id` names the member."""

    client_id: str
    gained: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One event. `day` is set on the first entry of a day. `tone` is the CSS class of the event's icon."""

    event: RebalanceRow
    text: str
    tone: str
    changes: list[QueueChange]
    note: str
    day: str


TONES: dict[str, str] = {
    RebalanceKind.JOINED: "joined",
    RebalanceKind.LEFT: "left",
    RebalanceKind.LOST: "lost",
    RebalanceKind.GONE: "left",
    RebalanceKind.QUEUES_MOVED: "moved-queues",
    RebalanceKind.SUBSCRIPTION_CHANGED: "moved-queues",
}


def timeline(events: Iterable[RebalanceRow]) -> list[TimelineEntry]:
    """Returns an entry per event, in their order: the newest first."""
    entries: list[TimelineEntry] = []
    last_day: date | None = None
    for event in events:
        day = timezone.localtime(event.at).date()
        entries.append(
            TimelineEntry(
                event=event,
                text=event_text(event),
                tone=TONES.get(event.kind, ""),
                changes=queue_changes(event.details.get("moves", [])),
                note=gettext("noticed between two samples") if event.source == RebalanceSource.POLL else "",
                day=date_format(day, pgettext("date format", "l, j F Y")) if day != last_day else "",
            )
        )
        last_day = day
    return entries


def event_text(event: RebalanceRow) -> str:
    """Returns the event in words, without the member that it is about."""
    match event.kind:
        case RebalanceKind.JOINED:
            return _with_member_count(pgettext("a member", "joined"), event)
        case RebalanceKind.LEFT:
            return _with_member_count(pgettext("a member", "left"), event)
        case RebalanceKind.LOST:
            return _with_member_count(gettext("lost its connection"), event)
        case RebalanceKind.GONE:
            return _with_member_count(gettext("disappeared"), event)
        case RebalanceKind.QUEUES_MOVED:
            return _moves_text(_net_moves(event.details.get("moves", [])))
        case RebalanceKind.SUBSCRIPTION_CHANGED:
            changes = "; ".join(map(_topic_change_text, event.details.get("topics", [])))
            return gettext("changed its subscription: %(changes)s") % {"changes": changes}
        case _:
            return event.kind


def queue_changes(moves: Iterable[dict[str, object]]) -> list[QueueChange]:
    """Returns what each member gained and lost in the end, in the order in which the members appear."""
    changes: dict[str, QueueChange] = {}
    for (topic, _broker, queue_id), (previous, new) in _net_moves(moves).items():
        queue = f"{topic} {queue_id}"
        if previous == new:
            continue
        if previous:
            changes.setdefault(previous, QueueChange(previous)).lost.append(queue)
        if new:
            changes.setdefault(new, QueueChange(new)).gained.append(queue)
    return list(changes.values())


def _net_moves(moves: Iterable[dict[str, object]]) -> dict[QueueKey, tuple[str, str]]:
    """Returns (first member, last member) by queue: within one event a queue may move away and back."""
    ends: dict[QueueKey, tuple[str, str]] = {}
    for move in moves:
        key = (str(move.get("topic", "")), str(move.get("broker", "")), str(move.get("queue_id", "")))
        previous, new = str(move.get("from", "")), str(move.get("to", ""))
        ends[key] = (ends[key][0] if key in ends else previous, new)
    return ends


def _moves_text(ends: dict[QueueKey, tuple[str, str]]) -> str:
    moved = sum(previous != new for previous, new in ends.values())
    if moved or not ends:
        return ngettext("%(n)d queue moved", "%(n)d queues moved", moved) % {"n": moved}
    return ngettext(
        "%(n)d queue went back to the member that had it",
        "%(n)d queues went back to the members that had them",
        len(ends),
    ) % {"n": len(ends)}


def _with_member_count(words: str, event: RebalanceRow) -> str:
    count = event.details.get("member_count")
    if not isinstance(count, int):
        return words
    after = ngettext("%(n)d member after that", "%(n)d members after that", count) % {"n": count}
    return gettext("%(event)s, %(members)s") % {"event": words, "members": after}


def _topic_change_text(change: dict[str, str]) -> str:
    nothing = gettext("nothing")
    return f"{change.get('topic', '')}: {change.get('before') or nothing} → {change.get('after') or nothing}"
