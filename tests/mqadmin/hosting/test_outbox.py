from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from consumer.outbox.models import OutboxMessage, OutboxState
from mqadmin.hosting import outbox
from mqadmin.hosting.outbox import OutboxRows
from tests.support.outbox_rows import make_outbox_message
from tests.support.plans import prefer_indexes

pytestmark = pytest.mark.django_db
PENDING, FAILED, SENT = OutboxState.PENDING, OutboxState.FAILED, OutboxState.SENT


def test_what_waits_comes_in_the_order_of_sending_and_the_rest_newest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "PAGE_SIZE", 2)
    now = timezone.now()
    for number in range(3):
        make_outbox_message(f"waits-{number}", now=now)
        make_outbox_message(f"failed-{number}", now=now, state=FAILED, ended_at=now + timedelta(seconds=number // 2))

    def ids(state: OutboxState, before: str = "") -> tuple[list[str], str]:
        rows, older = OutboxRows("default", state).page(before)
        return [row.message_id for row in rows], older

    first, older = ids(PENDING)
    assert first == ["waits-0", "waits-1"]
    assert ids(PENDING, older) == (["waits-2"], "")
    first, older = ids(FAILED)
    assert first == ["failed-2", "failed-1"]
    assert ids(FAILED, older) == (["failed-0"], "")
    assert ids(SENT, "garbage") == ([], "")


def test_counts_end_at_a_limit_and_the_oldest_that_waits_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "COUNT_MAX", 2)
    now = timezone.now()
    assert outbox.counts("default") == outbox.OutboxCounts(0, 0, 0, None)
    for number in range(3):
        make_outbox_message(f"waits-{number}", now=now - timedelta(minutes=3 - number))
    make_outbox_message("failed", now=now, state=FAILED)
    assert outbox.counts("default") == outbox.OutboxCounts(2, 1, 0, now - timedelta(minutes=3))


@pytest.mark.parametrize(("state", "order"), [(PENDING, ("ended_at", "pk")), (FAILED, ("-ended_at", "-pk"))])
def test_an_index_serves_the_list(state: OutboxState, order: tuple[str, str]) -> None:
    prefer_indexes()
    plan = OutboxMessage.objects.filter(state=state).defer("body", "options").order_by(*order)[:50].explain()
    assert "mq_outbox_by_state" in plan
    assert "TEMP B-TREE" not in plan
