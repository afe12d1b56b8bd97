"""When a failure began: its first message failed for the first time long before it died."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import Failure
from mqadmin.retries.models import FailedAttempt
from mqadmin.retries.selectors import first_failed_at
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message


@pytest.fixture
def failure(prod: Cluster, now: datetime) -> Failure:
    """UNIQ0 died first, UNIQ1 a minute later."""
    seed.make_dead_letters(prod, "billing", [died(0), died(1, minutes=1)], now=now)
    return Failure.objects.get()


FIRST_DEAD = datetime(2026, 3, 1, 12, tzinfo=UTC)


def died(offset: int, *, minutes: float = 0, **fields: object):  # type: ignore[no-untyped-def]
    at = FIRST_DEAD + timedelta(minutes=minutes)
    return dead_message(offset, store_timestamp_ms=round(at.timestamp() * 1000), **fields)


def attempted(cluster: Cluster, message_id: str, *hours_before: float, group: str = "billing") -> None:
    for number, hours in enumerate(hours_before, start=1):
        FailedAttempt.objects.create(
            cluster=cluster,
            group_name=group,
            broker_name="broker-a",
            topic_name="SCHEDULE_TOPIC_XXXX",
            queue_id=2,
            queue_offset=FailedAttempt.objects.count(),
            message_id=message_id,
            attempt_count=number,
            failed_at=FIRST_DEAD - timedelta(hours=hours),
        )


def test_it_began_with_the_first_attempt_of_what_died_first(prod: Cluster, failure: Failure) -> None:
    attempted(prod, "UNIQ0", 4.75, 4.7, 2)
    attempted(prod, "UNIQ1", 6)
    attempted(prod, "UNIQ0", 5, group="mail")
    assert first_failed_at(failure) == FIRST_DEAD - timedelta(hours=4.75)


def test_where_attempts_were_not_read_it_began_with_the_death(failure: Failure) -> None:
    assert first_failed_at(failure) == FIRST_DEAD


def test_attempts_before_a_former_death_of_the_message_are_of_that_death(prod: Cluster, failure: Failure) -> None:
    former = died(7, minutes=-180, properties={"UNIQ_KEY": "UNIQ0", "TAGS": "other"})
    seed.make_dead_letters(prod, "billing", [former], now=FIRST_DEAD)
    attempted(prod, "UNIQ0", 5, 2)
    failure.refresh_from_db()
    assert failure.first_dead_at == FIRST_DEAD
    assert first_failed_at(failure) == FIRST_DEAD - timedelta(hours=2)
