"""What became of a replayed message, as a table: what was seen of it in, the word out; and what rows say of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Group, QueueOffset
from mqadmin.replays import selectors
from mqadmin.replays.becoming import Became, Seen, became
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import EntryState, Target
from mqadmin.retries.models import DelayQueue, DelayRead
from remoting.wire.names import SCHEDULE_TOPIC
from tests.support import console_rows as seed

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
SOON, BEFORE = NOW + timedelta(seconds=1), NOW - timedelta(seconds=1)
RETRY = "%RETRY%billing"


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(Seen(), Became.NOT_KNOWN, id="the group's offset is not known"),
        pytest.param(Seen(has_passed=False), Became.WAITING, id="the group has not come to it"),
        pytest.param(Seen(has_passed=True), Became.CONSUMED, id="the group is past it and nothing failed"),
        pytest.param(Seen(has_passed=True, are_failures_seen=False), Became.NOT_KNOWN, id="failures cannot be read"),
        pytest.param(Seen(has_passed=True, failed_attempt=1, retry_at=SOON), Became.RETRYING, id="its retry will come"),
        pytest.param(Seen(has_passed=True, failed_attempt=2, retry_at=BEFORE), Became.FAILED_AGAIN, id="its time came"),
        pytest.param(Seen(has_passed=True, failed_attempt=1), Became.FAILED_AGAIN, id="when it comes is not told"),
        pytest.param(Seen(failed_attempt=1, retry_at=SOON), Became.RETRYING, id="a retry needs no offset"),
        pytest.param(Seen(is_dead_again=True, failed_attempt=9, retry_at=SOON), Became.DEAD_AGAIN, id="it is dead"),
        pytest.param(Seen(is_dead_again=True, failed_attempt=0), Became.DEAD_AGAIN, id="dead, no attempt was seen"),
    ],
)
def test_what_became_of_it_is_told_by_what_was_seen(seen: Seen, expected: Became) -> None:
    assert became(seen, NOW) == expected


@pytest.fixture
def job(db: None) -> ReplayJob:
    now = timezone.now()
    cluster = seed.make_cluster("there", now=now)
    group = Group.objects.create(cluster=cluster, name="billing", retry_times_max=3, seen_at=now)
    QueueOffset.objects.create(
        group=group, topic_name=RETRY, broker_name="broker-a", queue_id=0, committed_offset=11, seen_at=now
    )
    DelayRead.objects.create(cluster=cluster, broker_name="broker-a", read_until=now + timedelta(minutes=1))
    return ReplayJob.objects.create(
        cluster=cluster,
        identity="x",
        group_name="billing",
        until_id=0,
        target=Target.GROUP,
        rate_per_s=1,
        stop_percent=5,
        created_at=now,
    )


def sent(job: ReplayJob, offset: int, **values: object) -> ReplayEntry:
    place: dict[str, object] = {"topic": RETRY, "broker_name": "broker-a", "queue_id": 0, "queue_offset": offset}
    defaults = {"sent_at": timezone.now(), **place}
    return ReplayEntry.objects.create(job=job, state=EntryState.SENT, new_id="X", **(defaults | values))


def judged(job: ReplayJob) -> list[Became | None]:
    """Returns what the ledger says of its entries, the first one first."""
    return [one.became for one in reversed(selectors.ledger(job).page("").rows)]


def test_rows_are_judged_by_offsets_and_failed_attempts(job: ReplayJob) -> None:
    later = timezone.now() + timedelta(minutes=1)
    sent(job, 10)
    sent(job, 11)
    sent(job, 1, failed_attempt=2, retry_at=later)
    sent(job, 2, failed_attempt=1, retry_at=timezone.now())
    sent(job, 3, failed_attempt=0, dead_again_id=7)
    sent(job, 4, queue_id=1)
    ReplayEntry.objects.create(job=job, state=EntryState.REFUSED)
    expected = [
        Became.CONSUMED,
        Became.WAITING,
        Became.RETRYING,
        Became.FAILED_AGAIN,
        Became.DEAD_AGAIN,
        Became.NOT_KNOWN,
        None,
    ]
    assert judged(job) == expected


def test_nothing_is_said_to_be_consumed_where_failed_attempts_cannot_be_read(job: ReplayJob) -> None:
    sent(job, 10)
    sent(job, 11)
    DelayQueue.objects.create(
        cluster=job.cluster, topic_name=SCHEDULE_TOPIC, broker_name="broker-a", queue_id=2, problem="no permission"
    )
    assert judged(job) == [Became.NOT_KNOWN, Became.WAITING]


@pytest.mark.parametrize(
    ("read_s", "skipped_s", "expected"),
    [
        (1, None, Became.CONSUMED),
        (1, -1, Became.CONSUMED),
        (-1, None, Became.NOT_KNOWN),
        (None, None, Became.NOT_KNOWN),
        (2, 1, Became.NOT_KNOWN),
    ],
)
def test_consumed_is_said_where_failures_are_read_beyond_the_sending_and_none_was_passed_over(
    job: ReplayJob, read_s: int | None, skipped_s: int | None, expected: Became
) -> None:
    entry = sent(job, 10)
    assert entry.sent_at is not None
    moments = [None if s is None else entry.sent_at + timedelta(seconds=s) for s in (read_s, skipped_s)]
    DelayRead.objects.update(read_until=moments[0], skipped_at=moments[1])
    assert judged(job) == [expected]


def test_a_message_has_as_many_attempts_as_the_group_retries_and_one(job: ReplayJob) -> None:
    assert selectors.attempts_max(job) == 4
    Group.objects.update(retry_times_max=None)
    assert selectors.attempts_max(job) is None
