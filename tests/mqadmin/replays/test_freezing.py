"""The ledger of a replay is written chunk by chunk, also where a bounded look finds nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from mqadmin.deadletters import matching_rows
from mqadmin.deadletters.models import DeadLetter
from mqadmin.replays import freezing, ledger
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import Target
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message


@pytest.mark.django_db
@pytest.mark.parametrize(("until_ms", "offsets"), [(2, [0, 1]), (-1, []), (99, list(range(8)))])
def test_a_look_that_finds_nothing_is_not_the_end(
    monkeypatch: pytest.MonkeyPatch, until_ms: int, offsets: list[int]
) -> None:
    for name in ("LOOKED_UP_AT_FIRST", "LOOKED_UP_AT_ONCE", "JUDGED_MAX"):
        monkeypatch.setattr(matching_rows, name, 2)
    monkeypatch.setattr(matching_rows, "FEW", 0)
    monkeypatch.setattr(freezing, "FREEZE_CHUNK", 2)
    now = timezone.now()
    prod = seed.make_cluster("prod", now=now)
    seed.make_dead_letters(prod, "billing", [dead_message(offset) for offset in range(8)], now=now)
    first = DeadLetter.objects.order_by("dead_at")[0]
    until = first.dead_at + timedelta(milliseconds=until_ms)
    job = ReplayJob.objects.create(
        cluster=prod,
        group_name="billing",
        selection={"text": "orders", "until": until.isoformat()},
        until_id=DeadLetter.objects.order_by("-pk")[0].pk,
        target=Target.GROUP,
        rate_per_s=1,
        stop_percent=0,
        created_at=now,
    )
    token = ledger.take(job.pk, now)
    assert token is not None
    for _ in range(10):
        if job.frozen_at is None:
            freezing.freeze(job, token)
    assert job.frozen_at is not None
    entries = ReplayEntry.objects.filter(job=job).values_list("dead_letter__queue_offset", flat=True)
    assert sorted(entries) == offsets
