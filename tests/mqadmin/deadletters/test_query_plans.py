"""The first page of each list is read along an index in its order, however many dead letters there are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.newest_first import rows_behind
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.deadletters.selectors import DeadLetterFilter, FailureFilter, dead_letters, failures

# PostgreSQL plans by the number of rows, and there are none here.
pytestmark = pytest.mark.sqlite


SENT_LATELY = {"born_since": datetime(2026, 11, 1, tzinfo=UTC)}


def plan(rows: QuerySet[Any], column: str) -> str:
    return rows.order_by(f"-{column}", "-pk")[:51].explain()


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        ({}, "mq_dead_letter_latest"),
        ({"group": "billing"}, "mq_dead_letter_of_group"),
        ({"failure_id": 1}, "mq_dead_letter_of_failure"),
        ({"is_archived": True}, "mq_dead_letter_latest_arch"),
        ({"group": "billing", "is_archived": True}, "mq_dead_letter_of_group_arch"),
        ({"failure_id": 1, "is_archived": True}, "mq_dead_letter_of_failure_arch"),
        (SENT_LATELY, "mq_dead_born"),
        ({"group": "billing", **SENT_LATELY}, "mq_dead_born_of_group"),
        ({"failure_id": 1, **SENT_LATELY}, "mq_dead_born_of_failure"),
        ({"is_archived": True, **SENT_LATELY}, "mq_dead_born_arch"),
    ],
    ids=str,
)
def test_dead_letters(prod: Cluster, wanted: dict[str, Any], index: str) -> None:
    found = dead_letters(prod, DeadLetterFilter(**wanted))
    assert isinstance(found, NewestRows)
    text = plan(found.rows, found.column)
    assert f"USING INDEX {index} " in text
    assert "TEMP B-TREE" not in text


@pytest.mark.parametrize("wanted", [{}, {"group": "billing"}, {"failure_id": 1}, {"is_archived": True}], ids=str)
def test_a_further_page_begins_in_the_index_behind_the_one_before(prod: Cluster, wanted: dict[str, Any]) -> None:
    found = dead_letters(prod, DeadLetterFilter(**wanted))
    assert isinstance(found, NewestRows)
    text = plan(rows_behind(found.rows, found.column, timezone.now(), 7), found.column)
    assert "dead_at<?)" in text
    assert "TEMP B-TREE" not in text


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        ({}, "mq_failure_latest"),
        ({"group": "billing"}, "mq_failure_latest_of_group"),
        ({"owner": "payments"}, "mq_failure_latest_of_owner"),
    ],
    ids=str,
)
def test_failures(prod: Cluster, wanted: dict[str, Any], index: str) -> None:
    found = failures(prod, FailureFilter(**wanted))
    text = plan(found.rows, found.column)
    assert f"USING INDEX {index} " in text
    assert "TEMP B-TREE" not in text
