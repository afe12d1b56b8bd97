"""Pauses of queues that moved, judged once and kept with the event."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.clusters.models import VERDICT_RANKS, Cluster, Group, Verdict
from mqadmin.lag import packing
from mqadmin.lag.models import GroupSample, SampledSpan, SpanState
from mqadmin.lag.packing import QueueSample, Sampled
from mqadmin.rebalances import judging
from mqadmin.rebalances.models import RebalanceEvent

pytestmark = pytest.mark.django_db
START = datetime.fromtimestamp(1_700_000_000, UTC)
MOVE = {"topic": "orders", "broker": "a", "queue_id": 0, "from": "one", "to": "two"}


@pytest.fixture
def group() -> Group:
    cluster = Cluster.objects.create(name="local", namesrv="127.0.0.1:9876")
    return Group.objects.create(cluster=cluster, name="billing", seen_at=START)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def sampled(group: Group, until: int, *committed: tuple[int, int]) -> None:
    """`committed`: (moment, offset) of each sample; 90 messages are there all the time."""
    start_s = int(START.timestamp())
    SampledSpan.objects.create(
        cluster=group.cluster, state=SpanState.COMPLETE, since_s=start_s, until_s=start_s + until
    )
    for seconds, offset in committed:
        content = Sampled(VERDICT_RANKS[Verdict.OK], 1, 0, (QueueSample("a", 0, offset, 90),))
        GroupSample.objects.create(
            cluster=group.cluster,
            group=group,
            topic_name="orders",
            at_s=start_s + seconds,
            packed=packing.pack(content),
        )


def moved(group: Group, seconds: float) -> RebalanceEvent:
    return RebalanceEvent.objects.create(
        cluster=group.cluster,
        group=group,
        at=at(seconds),
        kind="queues_moved",
        details={"moves": [MOVE]},
        source="watch",
        source_key=f"boot:{seconds}",
    )


def pause_of(event: RebalanceEvent) -> object:
    event.refresh_from_db()
    return event.details.get("pause", "not judged")


def test_pause_is_written_once_consumption_goes_on(group: Group) -> None:
    sampled(group, 120, (0, 5), (30, 7))
    event = moved(group, 40)
    assert judging.judge(group.cluster, at(130)) == 0, "it still stands"
    sampled(group, 150, (150, 9))
    assert judging.judge(group.cluster, at(160)) == 1
    assert pause_of(event) == {
        "at_least_s": 75,
        "at_most_s": 165,
        "is_over": True,
        "topic": "orders",
        "broker": "a",
        "queue_id": 0,
    }
    assert judging.judge(group.cluster, at(190)) == 0, "once"


def test_queue_that_does_not_go_on_is_said_to_stand_when_the_time_is_over(group: Group) -> None:
    sampled(group, 1_200, (0, 5), (30, 7))
    event = moved(group, 40)
    assert judging.judge(group.cluster, at(930)) == 0
    assert judging.judge(group.cluster, at(950)) == 1
    pause = pause_of(event)
    assert isinstance(pause, dict)
    assert (pause["is_over"], pause["at_most_s"]) == (False, None)
    assert pause["at_least_s"] > 800


def test_what_was_not_sampled_is_not_known(group: Group) -> None:
    event = moved(group, 40)
    assert judging.judge(group.cluster, at(200)) == 0, "samples may be late"
    assert judging.judge(group.cluster, at(950)) == 1
    assert pause_of(event) is None


def test_event_that_just_happened_is_left_until_two_cycles_have_seen_it(group: Group) -> None:
    sampled(group, 60, (0, 5), (30, 7), (60, 9))
    event = moved(group, 31)
    assert judging.judge(group.cluster, at(70)) == 0
    assert pause_of(event) == "not judged"


def test_queues_that_stand_keep_no_later_event_from_its_turn(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "JUDGED_MAX", 2)
    sampled(group, 150, (0, 5), (30, 7))
    standing = [moved(group, 40), moved(group, 41)]
    for seconds, offset in ((0, 5), (30, 7), (150, 9)):
        content = Sampled(VERDICT_RANKS[Verdict.OK], 1, 0, (QueueSample("a", 0, offset, 90),))
        GroupSample.objects.create(
            cluster=group.cluster,
            group=group,
            topic_name="stock",
            at_s=int(START.timestamp()) + seconds,
            packed=packing.pack(content),
        )
    goes_on = moved(group, 42)
    RebalanceEvent.objects.filter(pk=goes_on.pk).update(details={"moves": [{**MOVE, "topic": "stock"}]})
    assert judging.judge(group.cluster, at(160)) == 1
    assert isinstance(pause_of(goes_on), dict)
    assert [pause_of(one) for one in standing] == ["not judged"] * 2


def test_events_whose_time_is_over_come_before_later_ones(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "JUDGED_MAX", 1)
    over, later = moved(group, 40), moved(group, 500)
    assert judging.judge(group.cluster, at(960)) == 1
    assert (pause_of(over), pause_of(later)) == (None, "not judged")
