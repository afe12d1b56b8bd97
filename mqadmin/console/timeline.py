"""Rebalance events as entries of a timeline: each in words, with the queues that members gained and lost; and gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from heapq import merge
from typing import Any, assert_never

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import conditional_escape, escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop, ngettext, pgettext

from mqadmin.console.figures import SECOND_MS, duration_text
from mqadmin.console.stored_words import in_viewers_language
from mqadmin.console.templatetags.numbers import clock
from mqadmin.lag.hot_window import Gap
from mqadmin.lag.models import SpanState
from mqadmin.rebalances.churn import THRESHOLDS, Churn, Restlessness
from mqadmin.rebalances.models import RebalanceKind, RebalanceSource
from mqadmin.rebalances.selectors import RebalanceRow

# Why instances end, as their rows keep it (`consumer/hosting/`): the catalogue has it for those who read Chinese.
END_REASONS = (
    gettext_noop("its worker stopped"),
    gettext_noop("its process was terminated"),
    gettext_noop("it was asked to stop"),
    gettext_noop("its process is gone"),
    gettext_noop("silent for too long"),
)
# Why a cluster was not sampled, as `mqadmin/lag/sampling.py` notes it.
GAP_NOTES = (
    gettext_noop("the cluster was not asked yet"),
    gettext_noop("the cluster does not answer: %(error)s"),
    gettext_noop("nothing follows the cluster"),
    gettext_noop("no answer from %(brokers)s"),
)
# topic, broker, queue id
QueueKey = tuple[str, str, str]


@dataclass(slots=True)
class QueueChange:
    """The ids of queues that a member gained and lost, by topic, or topic and broker. `client_id` names the member."""

    client_id: str
    gained: dict[str, list[str]] = field(default_factory=dict)
    lost: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One event, or one gap (then `event` is None). `day` is set on the first entry of a day, in UTC.

    `tone` is the CSS class of the event's icon, `source` says how it is known, `pause` what it cost.
    """

    at: datetime
    event: RebalanceRow | None
    text: str
    tone: str = ""
    changes: Sequence[QueueChange] = ()
    source: str = ""
    pause: str = ""
    day: str = ""


TONES: dict[str, str] = {
    RebalanceKind.JOINED: "joined",
    RebalanceKind.LEFT: "left",
    RebalanceKind.LOST: "lost",
    RebalanceKind.GONE: "left",
    RebalanceKind.QUEUES_MOVED: "moved-queues",
    RebalanceKind.SUBSCRIPTION_CHANGED: "moved-queues",
    RebalanceKind.INSTANCE_STARTED: "joined",
    RebalanceKind.INSTANCE_STOPPED: "left",
    RebalanceKind.INSTANCE_DIED: "lost",
    RebalanceKind.SCALED: "moved-queues",
}


def timeline(events: Iterable[RebalanceRow], gaps: Iterable[Gap] = ()) -> list[TimelineEntry]:
    """Returns an entry per event and gap, the newest first, as both come. A gap stands where it ended."""
    entries: list[TimelineEntry] = []
    last_day: date | None = None
    for entry in merge(map(_event_entry, events), map(_gap_entry, gaps), key=lambda one: one.at, reverse=True):
        day = timezone.localtime(entry.at).date()
        is_first = day != last_day
        entries.append(replace(entry, day=date_format(day, pgettext("date format", "l j F Y")) if is_first else ""))
        last_day = day
    return entries


def gap_text(gap: Gap) -> SafeString:
    """Says for how long the cluster was not sampled, and why as far as that is known. Its times are HTML elements."""
    match gap.state:
        case SpanState.PARTIAL:
            words = gettext("From %(since)s to %(until)s (%(lasted)s) not all was sampled: %(why)s.")
        case SpanState.FAILED:
            words = gettext("From %(since)s to %(until)s (%(lasted)s) nothing could be sampled: %(why)s.")
        case _:
            words = gettext(
                "From %(since)s to %(until)s (%(lasted)s) nothing was sampled: what happened may be missing."
            )
    return _with_times(
        words,
        since=clock(_moment(gap.at_s)),
        until=clock(_moment(gap.until_s)),
        lasted=duration_text((gap.until_s - gap.at_s) * SECOND_MS),
        why=in_viewers_language(gap.note),
    )


def _with_times(words: str, **values: str) -> SafeString:
    """Fills in values of which some are elements: live.js writes those in the viewer's time zone."""
    return SafeString(escape(words) % {name: conditional_escape(value) for name, value in values.items()})


def churn_text(churn: Churn) -> str:
    """Says what makes a group restless, or not: the numbers behind its word."""
    hour, day = churn.hour, churn.day
    counted = ngettext(
        "%(n)d rebalance in the last hour, %(day)d in the last 24 hours",
        "%(n)d rebalances in the last hour, %(day)d in the last 24 hours",
        hour.rebalance_count,
    ) % {"n": hour.rebalance_count, "day": day.rebalance_count}
    if day.lost_count:
        lost = ngettext("%(n)d member was lost", "%(n)d members were lost", day.lost_count) % {"n": day.lost_count}
        counted = f"{counted}; {lost}"
    match churn.restlessness:
        case Restlessness.CALM:
            return gettext("%(counted)s.") % {"counted": counted}
        case Restlessness.RESTLESS:
            words = gettext(
                "%(counted)s. Weighed (a lost member 3, a changed subscription 2, else 1): %(hour)d in the hour, "
                "%(day)d in the day; restless from %(of_hour)d or %(of_day)d on."
            )
        case Restlessness.CHURNING:
            words = gettext(
                "%(counted)s. Weighed (a lost member 3, a changed subscription 2, else 1): %(hour)d in the hour, "
                "%(day)d in the day; churning from %(of_hour)d or %(of_day)d on."
            )
        case other:
            assert_never(other)
    of_hour, of_day = THRESHOLDS[churn.restlessness]
    values = {"counted": counted, "hour": hour.score, "day": day.score, "of_hour": of_hour, "of_day": of_day}
    return words % values


def _event_entry(event: RebalanceRow) -> TimelineEntry:
    return TimelineEntry(
        at=event.at,
        event=event,
        text=event_text(event),
        tone=TONES.get(event.kind, ""),
        changes=queue_changes(event.details.get("moves", [])),
        source=source_text(event),
        pause=pause_text(event),
    )


def _gap_entry(gap: Gap) -> TimelineEntry:
    return TimelineEntry(at=_moment(gap.until_s), event=None, text=gap_text(gap))


def _moment(at_s: int) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


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
        case RebalanceKind.INSTANCE_STARTED:
            return gettext("started on %(worker)s") % _of_instance(event)
        case RebalanceKind.INSTANCE_STOPPED:
            return gettext("stopped on %(worker)s: %(reason)s") % _of_instance(event)
        case RebalanceKind.INSTANCE_DIED:
            return gettext("died on %(worker)s: %(reason)s") % _of_instance(event)
        case RebalanceKind.SCALED:
            return _scaled_text(event.details)
        case _:
            return event.kind


def _of_instance(event: RebalanceRow) -> dict[str, str]:
    details = event.details
    return {"worker": details.get("worker", ""), "reason": in_viewers_language(details.get("reason", ""))}


def _scaled_text(details: dict[str, Any]) -> str:
    if details.get("is_stopped"):
        return gettext("All instances of this project are to stop")
    wanted = details.get("wanted", 0)
    return ngettext("%(n)d instance is to run from now on", "%(n)d instances are to run from now on", wanted) % {
        "n": wanted
    }


def source_text(event: RebalanceRow) -> str:
    """Says how it is known, and how exactly when."""
    if event.source == RebalanceSource.WATCH:
        return gettext("reported by the broker")
    if event.source == RebalanceSource.RUNTIME:
        return gettext("by this project’s runtime")
    told = event.details.get("since")
    is_move = event.kind == RebalanceKind.QUEUES_MOVED
    if not told:
        return gettext("by the members' own word") if is_move else gettext("noticed between two samples")
    if is_move:
        words = gettext("by the members' own word, since %(since)s at the earliest")
    else:
        words = gettext("noticed between two samples, after %(since)s")
    return _with_times(words, since=clock(datetime.fromisoformat(told)))


def pause_text(event: RebalanceRow) -> str:
    """Says how long consumption stood around the event, as offsets show it; "" while that is not known."""
    if "pause" not in event.details:
        return ""
    pause: dict[str, Any] | None = event.details["pause"]
    if pause is None:
        return gettext("How long consumption stood is not known: the queues were not sampled.")
    if pause["at_most_s"] == 0:
        return gettext("No message waited in these queues.")
    words = {
        "queue": f"{pause['topic']} {pause['queue_id']}",
        "least": duration_text(pause["at_least_s"] * SECOND_MS),
        "most": duration_text((pause["at_most_s"] or 0) * SECOND_MS),
    }
    if not pause["is_over"]:
        return gettext("Consumption of %(queue)s stood for %(least)s at least, and had not gone on by then.") % words
    if pause["at_least_s"] == 0 and pause["at_most_s"] is not None:
        return gettext("Consumption was not seen to stand: for %(most)s at most.") % words
    if pause["at_most_s"] is None:
        return gettext("Consumption of %(queue)s stood for %(least)s at least.") % words
    return gettext("Consumption of %(queue)s stood for %(least)s at least, %(most)s at most.") % words


def queue_changes(moves: Iterable[dict[str, object]]) -> list[QueueChange]:
    """Returns what each member gained and lost in the end, in the order in which the members appear.

    Topics are named with the broker where not all queues are on one.
    """
    changes: dict[str, QueueChange] = {}
    ends = _net_moves(moves)
    is_one_broker = len({broker for _, broker, _ in ends}) == 1
    for (topic, broker, queue_id), (previous, new) in ends.items():
        if previous == new:
            continue
        name = topic if is_one_broker else f"{topic} · {broker}"
        if previous:
            changes.setdefault(previous, QueueChange(previous)).lost.setdefault(name, []).append(queue_id)
        if new:
            changes.setdefault(new, QueueChange(new)).gained.setdefault(name, []).append(queue_id)
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
