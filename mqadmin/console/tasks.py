"""Celery: mails about the night's reports (queue `jobs`); their sentences are those of the pages."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from mqadmin.console import report_mail
from mqadmin.reports import mailing


@shared_task
def hand_out_report_mails() -> None:
    for pk, attempt in mailing.DELIVERIES.hand_out(timezone.now()):
        deliver_report_mail.delay(pk, attempt)


@shared_task
def deliver_report_mail(pk: int, attempt: int) -> None:
    mailing.deliver(pk, attempt, timezone.now(), report_mail.send)
