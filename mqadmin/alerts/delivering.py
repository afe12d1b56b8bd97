"""Deliveries: handed out to workers, tried, tried again with growing pauses, and given up.

A delivery is claimed by conditional update for CLAIMED_FOR, and its attempt counted, before anything is sent. A worker
that ends in between leaves it to the next one: so a message may come twice, under the same key, and is never lost.
"""

from __future__ import annotations

import logging
import traceback
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db.models import F
from django.urls import reverse
from django.utils.translation import gettext_noop

from mqadmin.alerts import messages
from mqadmin.alerts.channels import sending
from mqadmin.alerts.conditions import About, Subject
from mqadmin.alerts.messages import Message, Told
from mqadmin.alerts.models import (
    ERROR_CHARS_MAX,
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertNotice,
    DeliveryState,
)
from mqadmin.alerts.noticing import NoticeKind
from mqadmin.alerts.posting import NotPosted
from mqadmin.alerts.signals import AlertsChanged, alerts_changed

logger = logging.getLogger(__name__)

# After each attempt that failed; after the last one it is given up: in all 39 minutes.
PAUSES_S = (10, 30, 60, 120, 300, 600, 1200)
ATTEMPTS_MAX = len(PAUSES_S) + 1
# Longer than a post may take, and than a task may wait for its worker.
CLAIMED_FOR = timedelta(seconds=90)
HANDED_OUT_MAX = 50
# An hour's chart that ends so long after it fired has that moment in its middle.
CHART_REACHES = timedelta(minutes=30)

_INTERNAL_ERROR = gettext_noop("an error of this console; its log has more")
_NO_CHANNEL = gettext_noop("the channel was deleted")


def hand_out(now: datetime) -> list[tuple[int, int]]:
    """Claims the deliveries that are due; returns their keys, each with the number of its attempt."""
    due = AlertDelivery.objects.filter(state=DeliveryState.WAITING, due_at__lte=now).order_by("due_at", "pk")
    claimed = []
    for pk, count in list(due.values_list("pk", "attempt_count")[:HANDED_OUT_MAX]):
        mine = AlertDelivery.objects.filter(pk=pk, state=DeliveryState.WAITING, attempt_count=count, due_at__lte=now)
        if mine.update(attempt_count=F("attempt_count") + 1, due_at=now + CLAIMED_FOR):
            claimed.append((pk, count + 1))
    return claimed


def deliver(pk: int, attempt: int, now: datetime, *, is_last: bool = False) -> DeliveryState | None:
    """Tries a delivery that was claimed; returns its state, None where another attempt has it."""
    found = AlertDelivery.objects.select_related("notice__cluster", "channel").filter(
        pk=pk, attempt_count=attempt, state=DeliveryState.WAITING
    )
    delivery = found.first()
    if delivery is None:
        return None
    error, is_for_good = _try(delivery)
    values: dict[str, object] = {"error": error[:ERROR_CHARS_MAX]}
    if error and not (is_for_good or is_last) and attempt < ATTEMPTS_MAX:
        state, values["due_at"] = DeliveryState.WAITING, now + timedelta(seconds=PAUSES_S[attempt - 1])
    else:
        state = DeliveryState.FAILED if error else DeliveryState.SENT
        values["ended_at"] = now
    AlertDelivery.objects.filter(pk=pk, attempt_count=attempt).update(state=state, **values)
    if error:
        logger.warning("alert not delivered through %s (attempt %d): %s", delivery.channel_name, attempt, error)
    if delivery.notice.cluster is not None:
        alerts_changed.send(sender=Alert, event=AlertsChanged(delivery.notice.cluster.name))
    return state


def _try(delivery: AlertDelivery) -> tuple[str, bool]:
    """Returns why it failed, "" where it did not, and whether for good."""
    channel = delivery.channel
    if channel is None:
        return _NO_CHANNEL, True
    try:
        sending.send(channel, message_of(delivery, channel))
    except NotPosted as error:
        return str(error), error.is_for_good
    except Exception as error:
        # Without what it says: an error of a library may have the address in it.
        where = "".join(traceback.format_tb(error.__traceback__))
        logger.error("delivery %s failed: %s\n%s", delivery.pk, type(error).__name__, where)
        return _INTERNAL_ERROR, False
    return "", False


def message_of(delivery: AlertDelivery, channel: AlertChannel) -> Message:
    notice: AlertNotice = delivery.notice
    rows = notice.alerts.select_related("cluster", "rule").order_by("name")
    cluster = notice.cluster.name if notice.cluster is not None else ""
    return messages.message(
        NoticeKind(notice.kind),
        notice.rule_name,
        cluster,
        [told(row) for row in rows[: messages.LINES_MAX]],
        rows.count(),
        language=channel.language,
        url=settings.MQADMIN_URL + reverse("alerts"),
        key=str(delivery.key),
    )


def told(row: Alert) -> Told:
    return Told(
        id=row.pk,
        about=About(row.rule.about),
        cluster=row.cluster.name,
        name=row.name,
        state=row.state,
        reading=row.reading,
        since=row.since,
        fired_at=row.fired_at,
        resolved_at=row.resolved_at,
        url=settings.MQADMIN_URL + place_of(row),
    )


def place_of(row: Alert) -> str:
    """Returns the address of the page that shows what happened: of a group its curves at that time."""
    cluster = row.cluster.name
    match Subject(row.subject):
        case Subject.GROUP:
            until = (row.fired_at or row.since).astimezone(UTC) + CHART_REACHES
            return f"{reverse('group_lag', args=[cluster, row.name])}?range=1h&until={until:%Y-%m-%dT%H:%M:%SZ}"
        case Subject.BROKER:
            return reverse("broker", args=[cluster, row.name])
        case Subject.CLUSTER:
            return reverse("cluster", args=[cluster])
