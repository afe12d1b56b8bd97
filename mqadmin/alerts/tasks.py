"""Celery: looks at the rules, delivers what is told, removes what is old (queue `jobs`), when beat says so."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from mqadmin.alerts import delivering, evaluating, retention


@shared_task
def look_at_rules() -> None:
    """Looks at all rules, and hands out what is to be told."""
    evaluating.evaluate(timezone.now())
    hand_out_deliveries()


@shared_task
def hand_out_deliveries() -> None:
    for pk, attempt in delivering.DELIVERIES.hand_out(timezone.now()):
        deliver.delay(pk, attempt)


@shared_task
def deliver(pk: int, attempt: int) -> None:
    delivering.deliver(pk, attempt, timezone.now())


@shared_task
def remove_old_alerts() -> None:
    retention.remove_old(timezone.now())
