"""Two people, or one person's two clicks, at the very same moment: threads with connections of their own."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import InProgress, Refusal, Result
from mqadmin.audit.models import AuditEntry
from tests.mqadmin.action_runs.conftest import NAME, House
from tests.support.callers import caller
from tests.support.together import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("cluster")]

VALUES = {"house": "no 7"}


def test_one_key_at_the_same_moment_is_carried_out_once(house: House, ann: AbstractUser) -> None:
    results = together(*[lambda: runner.run(caller(ann), NAME, "local", VALUES, key="once")] * 4)
    assert len(results) == 4
    assert len({result.run_id for result in results}) == 1
    assert all(isinstance(result, InProgress) or result.outcome == "done" for result in results)
    assert len(house.painted) == 2
    assert AuditEntry.objects.count() == 1


def test_of_two_people_who_saw_the_same_one_changes_it(house: House, ann: AbstractUser) -> None:
    bob = get_user_model().objects.create_superuser("bob")
    seen = runner.preview(caller(ann), NAME, "local", VALUES).fingerprint
    results: list[Result] = together(
        *[lambda who=who: runner.run(caller(who), NAME, "local", VALUES, fingerprint=seen) for who in (ann, bob)]
    )
    assert sorted(result.outcome for result in results) == ["done", "refused"]
    (refused,) = (result for result in results if result.outcome == "refused")
    assert refused.refusal in (Refusal.BUSY, Refusal.STALE)
    assert len(house.painted) == 2
    assert AuditEntry.objects.count() == 2
