"""Where retries stand: waiting, late, in the queue, with a member, past, failed again, dead, or not known."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mqadmin.clusters.models import Group
from mqadmin.deadletters import failing
from mqadmin.observing.gateway import MemberStatus
from mqadmin.retries.indexing import index_step
from mqadmin.retries.models import FailedAttempt
from mqadmin.retries.selectors import attempts, attempts_of, waiting
from mqadmin.retries.standing import Fate, fates, limit_of, standing_of
from remoting.wire.names import SCHEDULE_TOPIC
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message
from tests.support.delay_queues import FAILED_MS, DelayQueues, retried

RETRY = "%RETRY%billing"


@pytest.fixture
def row(prod, queues: DelayQueues) -> FailedAttempt:
    """Its first attempt failed, the next one came 10 s later; the broker has handed it over."""
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    queues.delivered = {3: 1}
    index_step(prod)
    return FailedAttempt.objects.get()


def fate(prod, row: FailedAttempt, seconds: float = 20) -> Fate:
    found = standing_of(prod, "billing", [])
    return fates([row], found, row.failed_at + timedelta(seconds=seconds))[row.pk]


def in_retry_queue(queues: DelayQueues, count: int = 1) -> None:
    queues.messages[RETRY] = [retried(offset, topic=RETRY, queue_id=0) for offset in range(count)]


def test_before_its_time_it_waits(prod, row):
    assert fate(prod, row, 9) == Fate.WAITING


def test_when_its_broker_has_not_handed_it_over_it_is_late(prod, row, queues):
    queues.delivered = {3: 0}
    assert fate(prod, row) == Fate.LATE
    # A level that has never handed anything over is not named.
    queues.delivered = {}
    assert fate(prod, row) == Fate.LATE


def test_in_the_retry_topic_it_is_in_the_queue_until_a_member_has_it(prod, row, queues):
    in_retry_queue(queues)
    assert fate(prod, row) == Fate.IN_QUEUE
    queues.committed, queues.pulled_up_to = 0, 0
    assert fate(prod, row) == Fate.IN_QUEUE
    queues.pulled_up_to = 1
    assert fate(prod, row) == Fate.WITH_MEMBER
    queues.committed = 1
    assert fate(prod, row) == Fate.PAST


def test_behind_more_than_is_looked_at_it_is_not_known(prod, row, queues):
    in_retry_queue(queues, 200)
    FailedAttempt.objects.update(message_id="OTHER")
    row.refresh_from_db()
    assert fate(prod, row) == Fate.UNKNOWN


def test_a_later_attempt_or_death_is_what_became_of_it(prod, row, queues, now):
    second = {"attempt": 2, "properties": {"UNIQ_KEY": "UNIQ0"}}
    queues.messages[SCHEDULE_TOPIC] += [retried(1, store_timestamp_ms=FAILED_MS + 12_000, **second)]
    index_step(prod)
    assert fate(prod, row) == Fate.FAILED_AGAIN
    last = FailedAttempt.objects.get(attempt_count=2)
    dead = dead_message(0, store_timestamp_ms=FAILED_MS + 50_000)
    seed.make_dead_letters(prod, "billing", [dead], now=now)
    assert fate(prod, last) == Fate.DEAD
    assert fate(prod, row) == Fate.FAILED_AGAIN


def test_a_dead_letter_has_the_attempts_of_its_own_chain(prod, row, now):
    first = dead_message(0, store_timestamp_ms=FAILED_MS + 50_000)
    again = dead_message(1, properties={"UNIQ_KEY": "UNIQ0"}, store_timestamp_ms=FAILED_MS + 99_000)
    seed.make_dead_letters(prod, "billing", [first, again], now=now)
    former, latter = prod.dead_letters.order_by("queue_offset")
    assert attempts_of(former) == [row]
    assert attempts_of(latter) == []


def test_without_an_answer_it_is_not_known_and_the_broker_is_named(prod, row):
    prod.brokers.update(address="127.0.0.1:1")
    found = standing_of(prod, "billing", [])
    assert list(found.failures) == ["127.0.0.1:1"]
    assert fates([row], found, row.failed_at + timedelta(seconds=20)) == {row.pk: Fate.UNKNOWN}


def test_what_is_due_is_counted_and_the_first_are_shown(prod, queues):
    in_retry_queue(queues, 200)
    queues.committed, queues.pulled_up_to = 10, 12
    found = standing_of(prod, "billing", [])
    assert (found.due_count, len(found.due)) == (190, 64)
    assert [one.is_with_member for one in found.due[:3]] == [True, True, False]
    assert found.due[0].broker_name == "broker-a"


def test_the_next_ones_come_first(prod, queues, now):
    now_ms = round(now.timestamp() * 1000)
    queues.messages[SCHEDULE_TOPIC] = [
        retried(offset, store_timestamp_ms=now_ms - offset * 1000) for offset in (0, 1, 2, 20)
    ]
    index_step(prod)
    found = waiting(prod, "billing", now)
    assert (found.count, [row.message_id for row in found.rows]) == (3, ["UNIQ2", "UNIQ1", "UNIQ0"])
    assert len(attempts(prod, "billing").page("").rows) == 4
    assert len(attempts(prod, "billing", waiting_at=now).page("").rows) == 3
    assert attempts(prod, "mail").page("").rows == ()


@pytest.mark.parametrize(
    ("told", "expected"),
    [((16,), (17, True)), ((5, 16), (17, True)), ((2**31 - 1,), (None, True)), ((), (4, False))],
    ids=["members", "members differ", "without end", "the group's setting"],
)
def test_how_many_attempts_there_are(prod, queues, now, monkeypatch, told, expected):
    group = seed.make_group(prod, "billing", now=now)
    Group.objects.update(retry_times_max=3)
    group.refresh_from_db()
    members = [seed.make_member(group, f"m@{number}", now=now) for number in range(3)]
    statuses = [MemberStatus({}, reconsume_times_max=number) for number in told]
    answered = tuple(failing.StatusAnswer(member, status) for member, status in zip(members, statuses, strict=False))
    monkeypatch.setattr(failing, "members_told", lambda *_: failing.StatusAnswers(answered, 3, {}))
    assert limit_of(standing_of(prod, "billing", members), group) == expected
