"""A reason that comes after its dead letter was indexed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from consumer.models import MessageFailure
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import tasks
from mqadmin.deadletters.indexing import FAILURES_MAX, OTHER_FAILURES, index_step
from mqadmin.deadletters.late_reasons import LATE, join_late_reasons
from mqadmin.deadletters.models import DeadLetter, DeadLetterQueue, Failure, FailureHour, SearchText
from mqadmin.deadletters.selectors import DeadLetterFilter, dead_letters
from mqadmin.deadletters.signals import dead_letters_indexed
from mqadmin.people.roles import Role
from tests.mqadmin.deadletters.conftest import TOPIC
from tests.support.dead_letter_brokers import DeadLetterQueues, dead_message

pytestmark = pytest.mark.usefixtures("queue")


@pytest.fixture(autouse=True)
def _ours(prod: Cluster, settings: Any) -> None:
    settings.MQADMIN_NAMESRV = prod.namesrv


def index(prod: Cluster, queues: DeadLetterQueues, now: datetime, count: int = 3) -> None:
    """Messages that died just now, each within a second of the other."""
    at_ms = int(now.timestamp() * 1000)
    queues.messages[TOPIC] = [
        dead_message(offset, reconsume_times=1, store_timestamp_ms=at_ms - offset) for offset in range(count)
    ]
    DeadLetterQueue.objects.update(end_offset=count)
    assert index_step(prod) == count


def fail(now: datetime, message_id: str, **fields: Any) -> None:
    given = {"group": "billing", "topic": "orders", "exception": "shop.Refused", "text": "no stock of 7", **fields}
    MessageFailure.objects.create(message_id=message_id, attempt=1, failed_at=now, member="m", listener="l", **given)


def found(prod: Cluster, **wanted: Any) -> list[int]:
    rows = dead_letters(prod, DeadLetterFilter(**{"role": Role.ADMIN, **wanted}))
    return [row.queue_offset for row in rows.after(None, 50)]


def counts() -> dict[str, tuple[int, int]]:
    """Exception → how many died of it, by the failure and by its hours."""
    hours = {one.pk: sum(hour.dead_count for hour in one.hours.all()) for one in Failure.objects.all()}
    return {one.failure_class: (one.dead_count, hours[one.pk]) for one in Failure.objects.all()}


def test_a_dead_letter_moves_to_the_failure_that_its_late_reason_makes(
    prod: Cluster, queues: DeadLetterQueues, now: datetime
) -> None:
    index(prod, queues, now)
    assert counts() == {"": (3, 3)}
    fail(now, "UNIQ1")
    events: list[set[int]] = []

    def hear(event: Any, **_: Any) -> None:
        events.append(set(event.failure_ids))

    dead_letters_indexed.connect(hear)
    try:
        assert join_late_reasons(now) == 1
        assert join_late_reasons(now) == 0
    finally:
        dead_letters_indexed.disconnect(hear)
    row = DeadLetter.objects.select_related("failure").get(message_id="UNIQ1")
    assert (row.failure_class, row.failure_text, row.failed_member, row.failed_listener) == (
        "shop.Refused",
        "no stock of 7",
        "m",
        "l",
    )
    assert (row.failure.failure_class, row.failure.shape) == ("shop.Refused", "JSON object: id number")
    assert counts() == {"": (2, 2), "shop.Refused": (1, 1)}
    assert events == [{one.pk for one in Failure.objects.all()}]


def test_it_is_found_by_the_words_of_its_reason_and_in_its_new_failure_alone(
    prod: Cluster, queues: DeadLetterQueues, now: datetime
) -> None:
    index(prod, queues, now)
    before = DeadLetter.objects.get(message_id="UNIQ1").failure_id
    fail(now, "UNIQ1")
    join_late_reasons(now)
    after = DeadLetter.objects.get(message_id="UNIQ1").failure_id
    assert found(prod, text="refused") == found(prod, text="stock uniq1") == [1]
    assert found(prod, body='"id"', failure_id=after) == [1]
    assert found(prod, body='"id"', failure_id=before) == [2, 0]
    assert SearchText.objects.count() == 3


def test_those_that_died_alike_meet_whether_their_reasons_came_in_time_or_late(
    prod: Cluster, queues: DeadLetterQueues, now: datetime
) -> None:
    fail(now, "UNIQ0", text="no stock of 3")
    index(prod, queues, now)
    fail(now, "UNIQ1")
    fail(now, "UNIQ2")
    assert join_late_reasons(now) == 2
    # Of the failure without a reason nothing is left.
    assert counts() == {"shop.Refused": (3, 3)}
    assert FailureHour.objects.count() == 1


def test_a_failure_whose_reason_came_for_all_of_it_is_the_same_one(
    prod: Cluster, queues: DeadLetterQueues, now: datetime
) -> None:
    index(prod, queues, now)
    number = Failure.objects.get().pk
    Failure.objects.update(owner="anna", note="asks the stock")
    for message_id in ("UNIQ0", "UNIQ1", "UNIQ2"):
        fail(now, message_id)
    assert join_late_reasons(now) == 3
    failure = Failure.objects.get()
    assert (failure.pk, failure.owner, failure.failure_class) == (number, "anna", "shop.Refused")
    assert counts() == {"shop.Refused": (3, 3)}


def test_a_failure_that_people_wrote_on_stays(prod: Cluster, queues: DeadLetterQueues, now: datetime) -> None:
    index(prod, queues, now, 2)
    Failure.objects.update(owner="anna")
    fail(now, "UNIQ0")
    fail(now, "UNIQ1", exception="shop.Other")
    join_late_reasons(now)
    assert counts() == {"": (0, 0), "shop.Refused": (1, 1), "shop.Other": (1, 1)}


def test_one_of_too_many_failures_gets_its_reason_and_stays_among_them(
    prod: Cluster, queues: DeadLetterQueues, now: datetime
) -> None:
    made = {"cluster": prod, "group_name": "billing", "first_dead_at": now, "last_dead_at": now}
    Failure.objects.bulk_create(Failure(**made, identity=f"{number}") for number in range(FAILURES_MAX))
    index(prod, queues, now, 1)
    fail(now, "UNIQ0")
    assert join_late_reasons(now) == 1
    row = DeadLetter.objects.select_related("failure").get()
    assert (row.failure_class, row.failure.identity, row.failure.dead_count) == ("shop.Refused", OTHER_FAILURES, 1)


@pytest.mark.parametrize(
    "fields", [{"group": "mailing"}, {"cluster": "payments"}, {"message_id": "UNIQ9"}], ids=["group", "cluster", "id"]
)
def test_what_failed_elsewhere_is_no_reason(
    prod: Cluster, queues: DeadLetterQueues, now: datetime, fields: dict[str, Any]
) -> None:
    index(prod, queues, now)
    fail(now, **{"message_id": "UNIQ1", **fields})
    assert join_late_reasons(now) == 0
    assert counts() == {"": (3, 3)}


def test_what_died_long_ago_or_in_a_cluster_that_no_setting_names_is_left(
    prod: Cluster, queues: DeadLetterQueues, now: datetime, settings: Any
) -> None:
    index(prod, queues, now)
    fail(now, "UNIQ1")
    assert join_late_reasons(now + LATE + timedelta(minutes=1)) == 0
    settings.MQADMIN_NAMESRV = "10.0.0.9:9876"
    assert join_late_reasons(now) == 0


def test_each_look_of_the_index_joins_what_is_late(prod: Cluster, queues: DeadLetterQueues, now: datetime) -> None:
    index(prod, queues, now, 1)
    fail(now, "UNIQ0")
    tasks.index_dead_letters()
    assert counts() == {"shop.Refused": (1, 1)}
