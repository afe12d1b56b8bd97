from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.audit import chain
from mqadmin.audit.models import AuditEntry
from tests.support.callers import caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def aged(write: Callable[..., AuditEntry]) -> None:
    for days in (100, 80, 60, 40, 0):
        write(at=timezone.now() - timedelta(days=days))


def day(days_ago: int) -> str:
    return (timezone.now() - timedelta(days=days_ago)).date().isoformat()


def expire(person: Any, before: str, **how: Any) -> Result:
    result = runner.run(caller(person), "expire_audit", "", {"before": before}, **{"confirmation": before, **how})
    assert isinstance(result, Result)
    return result


def test_old_entries_go_and_the_run_says_so_in_the_audit(aged: None, ann: AbstractUser) -> None:
    shown = runner.preview(caller(ann), "expire_audit", "", {"before": day(50)})
    assert (shown.changes[0].before, shown.changes[0].after) == ({"entries": 5}, {"entries": 2})
    result = expire(ann, day(50), fingerprint=shown.fingerprint)
    assert (result.outcome, result.subject) == ("done", day(50))
    assert "3 entries" in result.items[0].words
    assert list(AuditEntry.objects.order_by("number").values_list("number", "action")) == [
        (4, "create_topic"),
        (5, "create_topic"),
        (6, "expire_audit"),
    ]
    assert chain.check().fault == ""


def test_the_last_month_always_stays(aged: None, ann: AbstractUser) -> None:
    result = expire(ann, day(10))
    assert (result.refusal, set(result.errors)) == (Refusal.ARGUMENTS, {"before"})
    assert AuditEntry.objects.count() == 6


def test_nothing_so_old_changes_nothing(aged: None, ann: AbstractUser) -> None:
    result = expire(ann, day(365))
    assert [one.state for one in result.items] == ["unchanged"]


def test_the_day_is_typed_to_confirm(aged: None, ann: AbstractUser) -> None:
    assert expire(ann, day(50), confirmation="yes").refusal == Refusal.CONFIRMATION
