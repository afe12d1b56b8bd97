"""Deliveries of alerts: what is sent through which channel (`mqadmin/delivery.py` says how often and when)."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext_noop

from mqadmin.alerts import messages
from mqadmin.alerts.channels import sending
from mqadmin.alerts.conditions import About, Subject
from mqadmin.alerts.messages import Message, Told
from mqadmin.alerts.models import ERROR_CHARS_MAX, Alert, AlertChannel, AlertDelivery, AlertNotice
from mqadmin.alerts.noticing import NoticeKind
from mqadmin.alerts.signals import AlertsChanged, alerts_changed
from mqadmin.clusters.selectors.newest_first import write_cursor
from mqadmin.delivery import Deliveries, DeliveryState, NotDelivered

logger = logging.getLogger(__name__)

# After each attempt that failed; after the last one it is given up: in all 39 minutes.
PAUSES_S = (10, 30, 60, 120, 300, 600, 1200)
# Longer than a post may take, and than a task may wait for its worker.
CLAIMED_FOR = timedelta(seconds=90)
DELIVERIES = Deliveries(AlertDelivery, PAUSES_S, CLAIMED_FOR, ERROR_CHARS_MAX)
# An hour's chart that ends so long after it fired has that moment in its middle; so long after it a timeline begins.
SHOWS_AFTER = timedelta(minutes=30)
_NO_CHANNEL = gettext_noop("the channel was deleted")


def deliver(pk: int, attempt: int, now: datetime, *, is_last: bool = False) -> DeliveryState | None:
    """Tries a delivery that was claimed; returns its state, None where another attempt has it."""
    delivery = DELIVERIES.claimed(pk, attempt).select_related("notice__cluster", "channel").first()
    if delivery is None:
        return None
    state, error = DELIVERIES.attempt(pk, attempt, now, lambda: _send(delivery), is_last=is_last)
    if error:
        logger.warning("alert not delivered through %s (attempt %d): %s", delivery.channel_name, attempt, error)
    if delivery.notice.cluster is not None:
        alerts_changed.send(sender=Alert, event=AlertsChanged(delivery.notice.cluster.name))
    return state


def _send(delivery: AlertDelivery) -> None:
    """Raises NotDelivered."""
    channel = delivery.channel
    if channel is None:
        raise NotDelivered(_NO_CHANNEL, is_for_good=True)
    sending.send(channel, message_of(delivery, channel))


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
    """Returns the address of the page that shows what happened: of a group its curves at that time.

    Of a broker or a cluster it is the cluster's timeline at that time, which draws when what was not sampled and why,
    and what became of its groups' members. Of the figures of a disk or a scheduler no past is kept.
    """
    cluster = row.cluster.name
    until = (row.fired_at or row.since).astimezone(UTC) + SHOWS_AFTER
    if row.subject == Subject.GROUP:
        return f"{reverse('group_lag', args=[cluster, row.name])}?range=1h&until={until:%Y-%m-%dT%H:%M:%SZ}"
    return f"{reverse('rebalances', args=[cluster])}?{urlencode({'before': write_cursor(until, 0)})}"
