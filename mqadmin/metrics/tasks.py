"""Celery: brokers are asked for their figures (queue `jobs`; beat starts it)."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from mqadmin.metrics import sampling


@shared_task
def sample_brokers() -> None:
    """Asks all brokers once."""
    sampling.sample_all(timezone.now())
