"""Mails about a night's report: asked for once, handed out to workers, tried again with growing pauses, given up.

One is claimed by conditional update for CLAIMED_FOR, and its attempt counted, before anything is sent. A worker that
ends in between leaves it to the next one: so a mail may come twice, under the same Message-ID, and is never lost.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta

from django.db import DatabaseError
from django.db.models import F
from django.utils.translation import gettext_noop

from mqadmin.alerts.posting import NotPosted
from mqadmin.clusters.models import Cluster
from mqadmin.reports.models import PROBLEM_CHARS_MAX, MailRecipients, MailState, ReportMail, ReportRun
from mqadmin.reports.runs import tell

logger = logging.getLogger(__name__)

# After each attempt that failed; after the last one it is given up: in all 3 h 51 min, before people begin their day.
PAUSES_S = (60, 300, 900, 1800, 3600, 7200)
ATTEMPTS_MAX = len(PAUSES_S) + 1
# Longer than a mail server may take (10 s a step), and than a task may wait for its worker.
CLAIMED_FOR = timedelta(minutes=5)
HANDED_OUT_MAX = 50
# By then its night is never made again by itself.
KEPT = timedelta(days=62)

_NOBODY = gettext_noop("nobody is to get it any more")
_INTERNAL_ERROR = gettext_noop("an error of this console; its log has more")

# Writes a mail and hands it to the server. Raises NotPosted.
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


def hand_out(now: datetime) -> list[tuple[int, int]]:
    """Claims the mails that are due; returns their keys, each with the number of its attempt."""
    due = ReportMail.objects.filter(state=MailState.WAITING, due_at__lte=now).order_by("due_at", "pk")
    claimed = []
    for pk, count in list(due.values_list("pk", "attempt_count")[:HANDED_OUT_MAX]):
        mine = ReportMail.objects.filter(pk=pk, state=MailState.WAITING, attempt_count=count, due_at__lte=now)
        if mine.update(attempt_count=F("attempt_count") + 1, due_at=now + CLAIMED_FOR):
            claimed.append((pk, count + 1))
    return claimed


def deliver(pk: int, attempt: int, now: datetime, send: Send) -> MailState | None:
    """Tries a mail that was claimed; returns its state, None where another attempt has it."""
    found = ReportMail.objects.filter(pk=pk, attempt_count=attempt, state=MailState.WAITING)
    mail = found.select_related("cluster", "run").first()
    if mail is None:
        return None
    error, is_for_good = _try(mail, send)
    values: dict[str, object] = {"error": error[:PROBLEM_CHARS_MAX]}
    if error and not is_for_good and attempt < ATTEMPTS_MAX:
        state, values["due_at"] = MailState.WAITING, now + timedelta(seconds=PAUSES_S[attempt - 1])
    else:
        state = MailState.FAILED if error else MailState.SENT
        values["ended_at"] = now
    ReportMail.objects.filter(pk=pk, attempt_count=attempt).update(state=state, **values)
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


def _try(mail: ReportMail, send: Send) -> tuple[str, bool]:
    """Returns why it failed, "" where it did not, and whether for good."""
    recipients = recipients_of(mail.cluster_id, mail.language)
    if not recipients:
        return _NOBODY, True
    try:
        send(mail, recipients)
    except NotPosted as error:
        return str(error), error.is_for_good
    except Exception as error:
        # Without what it says: an error of a library may have an address in it.
        where = "".join(traceback.format_tb(error.__traceback__))
        logger.error("mail %s failed: %s\n%s", mail.pk, type(error).__name__, where)
        return _INTERNAL_ERROR, False
    return "", False
