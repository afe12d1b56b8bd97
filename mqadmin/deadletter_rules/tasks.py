"""Celery: applies the rules that run (queue `jobs`), when beat says so."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from mqadmin.deadletter_rules import applying


@shared_task
def apply_dead_letter_rules() -> None:
    applying.apply_rules(timezone.now())


@shared_task
def forget_old_rule_counts() -> None:
    applying.forget_old_counts(timezone.now())
