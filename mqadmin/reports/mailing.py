"""Mails about a night's report: asked for once, then delivered (`mqadmin/delivery.py` says how often and when)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta

from django.db import DatabaseError
from django.utils.translation import gettext_noop

from mqadmin.clusters.models import Cluster
from mqadmin.delivery import Deliveries, DeliveryState, NotDelivered
from mqadmin.reports.models import PROBLEM_CHARS_MAX, MailRecipients, ReportMail, ReportRun
from mqadmin.reports.runs import tell

logger = logging.getLogger(__name__)

# After each attempt that failed; after the last one it is given up: in all 3 h 51 min, before people begin their day.
PAUSES_S = (60, 300, 900, 1800, 3600, 7200)
# Longer than a mail server may take (10 s a step), and than a task may wait for its worker.
CLAIMED_FOR = timedelta(minutes=5)
DELIVERIES = Deliveries(ReportMail, PAUSES_S, CLAIMED_FOR, PROBLEM_CHARS_MAX)
# By then its night is never made again by itself.
KEPT = timedelta(days=62)

_NOBODY = gettext_noop("nobody is to get it any more")

# Writes a mail and hands it to the server. Raises NotDelivered.
Send = Callable[[ReportMail, Sequence[str]], None]


def ask(run: ReportRun, cluster: Cluster, day: date, now: datetime) -> None:
    """Asks for the mails of a day; those that were asked for before stay as they are. The report never fails by it."""
    try:
        languages = MailRecipients.objects.filter(cluster=cluster).values_list("language", flat=True)
        ReportMail.objects.bulk_create(
            [ReportMail(cluster=cluster, day=day, language=one, run=run, due_at=now) for one in languages],
            ignore_conflicts=True,
        )
    except DatabaseError as error:
        logger.error("the report of %s of %s is not mailed: %s", cluster, day, error)


def deliver(pk: int, attempt: int, now: datetime, send: Send) -> DeliveryState | None:
    """Tries a mail that was claimed; returns its state, None where another attempt has it."""
    mail = DELIVERIES.claimed(pk, attempt).select_related("cluster", "run").first()
    if mail is None:
        return None
    state, error = DELIVERIES.attempt(pk, attempt, now, lambda: _send(mail, attempt, send))
    if error:
        logger.warning("the report of %s was not mailed (attempt %d): %s", mail, attempt, error)
    if mail.run is not None:
        tell(mail.run)
    return state


def recipients_of(cluster_id: int, language: str) -> list[str]:
    """Returns the addresses of those who get the mail now."""
    row = MailRecipients.objects.filter(cluster_id=cluster_id, language=language).first()
    return row.addresses.split() if row is not None else []


def forget_old(now: datetime) -> None:
    ReportMail.objects.filter(day__lt=(now - KEPT).date()).delete()


def _send(mail: ReportMail, attempt: int, send: Send) -> None:
    """Writes down to whom it goes, then sends it: so a worker that is killed leaves who may have it.

    Raises NotDelivered.
    """
    recipients = recipients_of(mail.cluster_id, mail.language)
    DELIVERIES.claimed(mail.pk, attempt).update(recipients=" ".join(recipients))
    if not recipients:
        raise NotDelivered(_NOBODY, is_for_good=True)
    send(mail, recipients)
