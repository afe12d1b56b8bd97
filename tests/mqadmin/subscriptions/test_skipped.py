"""What a conflict may have skipped: never fewer than it did, and in words where nothing can be known."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mqadmin.clusters.models import Group
from mqadmin.console.conflict_sentences import conflict_lines
from mqadmin.lag import passed
from mqadmin.lag.models import GroupSample
from mqadmin.lag.packing import QueueSample, Sampled, pack
from mqadmin.subscriptions.consistency import Finding, FindingKind
from mqadmin.subscriptions.skipped import Skipped, SkippedMethod, skipped
from tests.support import console_rows as seed


def finding(kind: FindingKind, since: datetime | None) -> Finding:
    said = {FindingKind.ORDER: ("orderly", "concurrently")}.get(kind, ("B", "*"))
    return Finding(
        kind=kind,
        topic="orders",
        odd=("c@1",),
        marked=("c@1",),
        member_count=3,
        by_odd=said[0],
        by_rest=said[1],
        since=since,
    )


def sampled(group: Group, at: datetime, *queues: QueueSample) -> None:
    packed = pack(Sampled(40, 3, 0, queues))
    GroupSample.objects.create(
        cluster=group.cluster, group=group, topic_name="orders", at_s=int(at.timestamp()), packed=packed
    )


@pytest.fixture
def since(now: datetime) -> datetime:
    return now.replace(microsecond=0) - timedelta(hours=2)


@pytest.fixture
def consuming(billing: Group, now: datetime) -> Group:
    """Has 900 of queue 0 committed, and 50 of queue 1."""
    for queue_id, committed in ((0, 900), (1, 50)):
        seed.make_queue_offset(billing, "orders", queue_id, now=now, lag=0, committed_offset=committed)
    return billing


def test_at_most_what_progress_passed_since_it_began(consuming: Group, since: datetime) -> None:
    sampled(consuming, since - timedelta(minutes=50), QueueSample("broker-a", 0, 100, 900))
    sampled(consuming, since, QueueSample("broker-a", 0, 600, 900), QueueSample("broker-a", 1, 40, 50))
    sampled(consuming, since + timedelta(minutes=1), QueueSample("broker-a", 0, 899, 900))
    found = skipped(consuming, finding(FindingKind.EXPRESSION, since))
    assert found == Skipped(SkippedMethod.PROGRESS_PASSED, 310, since)


def test_queue_that_was_not_known_then_counts_from_its_beginning(consuming: Group, since: datetime) -> None:
    sampled(consuming, since, QueueSample("broker-a", 0, 600, 900), QueueSample("broker-a", 1, None, 50))
    assert skipped(consuming, finding(FindingKind.EXPRESSION, since)).at_most == 350


def test_counted_from_the_first_sample_there_is_where_older_ones_are_gone(consuming: Group, since: datetime) -> None:
    later = since + timedelta(minutes=30)
    sampled(consuming, later, QueueSample("broker-a", 0, 890, 900), QueueSample("broker-a", 1, 50, 50))
    assert skipped(consuming, finding(FindingKind.EXPRESSION, since)) == Skipped(
        SkippedMethod.PROGRESS_PASSED, 10, later
    )


def test_offset_that_was_moved_back_skipped_nothing(consuming: Group, since: datetime) -> None:
    sampled(consuming, since, QueueSample("broker-a", 0, 2000, 2000), QueueSample("broker-a", 1, 50, 50))
    found = skipped(consuming, finding(FindingKind.EXPRESSION, since))
    assert (found.at_most, found.moved_back_count) == (0, 1)


def test_what_was_passed_before_and_after_an_offset_was_moved_back_counts(consuming: Group, since: datetime) -> None:
    for minute, committed in enumerate((600, 2000, 100, 400)):
        at = since + timedelta(minutes=minute)
        sampled(consuming, at, QueueSample("broker-a", 0, committed, 2000), QueueSample("broker-a", 1, 50, 50))
    found = skipped(consuming, finding(FindingKind.EXPRESSION, since))
    assert found == Skipped(SkippedMethod.PROGRESS_PASSED, (2000 - 600) + (900 - 100), since, 1)


@pytest.mark.parametrize(
    ("kind", "method", "words"),
    [
        (FindingKind.EXPRESSION, SkippedMethod.NOT_KNOWN, "Not known"),
        (FindingKind.TOPICS, SkippedMethod.WAITS, "what nobody reads waits"),
        (FindingKind.ORDER, SkippedMethod.NOTHING_SKIPPED, "None: members differ in how"),
        (FindingKind.MODEL, SkippedMethod.NOT_KNOWN, "Not known"),
        (FindingKind.START, SkippedMethod.NOT_KNOWN, "Not known"),
    ],
)
def test_what_cannot_be_counted_is_said_in_words(
    consuming: Group, since: datetime, kind: FindingKind, method: SkippedMethod, words: str
) -> None:
    found = finding(kind, since)
    told = skipped(consuming, found)
    assert told == Skipped(method)
    (line,) = conflict_lines([found], [told])
    assert words in line.skipped


def test_bound_is_said_to_be_one(since: datetime) -> None:
    found = finding(FindingKind.EXPRESSION, since)
    (line,) = conflict_lines([found], [Skipped(SkippedMethod.PROGRESS_PASSED, 12_400, since)])
    assert line.skipped.startswith("At most 12,400 messages of orders")
    assert "moved back" not in line.skipped


@pytest.mark.parametrize(("count", "words"), [(1, "An offset was moved back"), (3, "Offsets were moved back 3 times")])
def test_offsets_that_were_moved_back_are_named_beside_the_bound(since: datetime, count: int, words: str) -> None:
    found = finding(FindingKind.EXPRESSION, since)
    (line,) = conflict_lines([found], [Skipped(SkippedMethod.PROGRESS_PASSED, 12_400, since, count)])
    assert words in line.skipped


def test_what_was_counted_is_not_counted_again_for_the_next_viewer(
    consuming: Group, since: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked: list[object] = []
    committed = passed._committed

    def counted(packed: bytes) -> object:
        unpacked.append(packed)
        return committed(packed)

    monkeypatch.setattr(passed, "_committed", counted)
    for minute in range(100):
        sampled(consuming, since + timedelta(minutes=minute), QueueSample("broker-a", 0, 5 * minute, 1000))
    conflict = finding(FindingKind.EXPRESSION, since)
    first = skipped(consuming, conflict)
    assert (first.at_most, len(unpacked)) == (950, 100)
    with CaptureQueriesContext(connection) as queries:
        assert skipped(consuming, conflict) == first
    assert (len(unpacked), len(queries)) == (100, 2), "the newer samples, of which there are none, and the offsets"
    sampled(consuming, since + timedelta(minutes=100), QueueSample("broker-a", 0, 400, 1000))
    moved_back = skipped(consuming, conflict)
    assert len(unpacked) == 101
    cache.clear()
    assert skipped(consuming, conflict) == moved_back
    assert moved_back.moved_back_count == 1
