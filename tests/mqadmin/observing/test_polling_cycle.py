"""A polled cluster's cycle, down to the rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from mqadmin.clusters.looking import LOOKED_AT_FOR, note_looked_at
from mqadmin.clusters.models import Cluster, Group, Member, QueueOffset, Subscription, Topic
from mqadmin.lag import history
from mqadmin.lag.models import LagHistory
from mqadmin.lag.verdicts import STALLED_AFTER_S
from mqadmin.observing import polling_cycle
from mqadmin.observing.polling import poll
from mqadmin.observing.turns import Urgent
from mqadmin.rebalances.models import RebalanceEvent
from remoting.wire.bodies.groups import ClientConnection, ConsumerConnection, SubscriptionGroupConfig
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicConfig, TopicOffset
from tests.support.console_rows import make_group, make_queue_offset
from tests.support.scripted_broker import BROKER_NAME, ScriptedBroker

pytestmark = pytest.mark.django_db

QUEUE = MessageQueue("orders", BROKER_NAME, 0)


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker(is_watched=False) as broker:
        broker.tables.topics["orders"] = TopicConfig(topic_name="orders")
        broker.tables.groups["billing"] = SubscriptionGroupConfig(group_name="billing")
        broker.tables.ends[QUEUE] = TopicOffset(min_offset=0, max_offset=10)
        broker.tables.committed[("orders", "billing")] = {0: 10}
        broker.tables.members["billing"] = members("c1")
        yield broker


@pytest.fixture
def cluster(broker: ScriptedBroker) -> Cluster:
    return Cluster.objects.create(name="prod", namesrv=broker.address, kind="apache")


def members(*client_ids: str, expression: str = "*") -> ConsumerConnection:
    return ConsumerConnection(
        connection_set=[ClientConnection(client_id=client_id) for client_id in client_ids],
        subscription_table={"orders": SubscriptionData(topic="orders", sub_string=expression, sub_version=1)},
    )


def test_cycle_fills_the_rows_and_says_what_it_cost(cluster: Cluster, broker: ScriptedBroker) -> None:
    polling_cycle.poll_once(cluster, timezone.now())
    cluster.refresh_from_db()
    assert (cluster.state, cluster.rocketmq_name) == ("reachable", "DefaultCluster")
    assert cluster.cycle_request_count == len(broker.asked)
    cost = cluster.request_costs.get()
    assert (cost.address, cost.request_count, cost.error_count) == (broker.address, len(broker.asked), 0)
    assert cost.seconds > 0
    assert Topic.objects.get().max_total == 10
    group = Group.objects.get()
    assert (group.lag, group.member_count) == (0, 1)
    assert QueueOffset.objects.get().owner is None, "who pulls is not known on Apache"


def test_groups_that_are_looked_at_come_before_those_in_trouble_with_their_topics(cluster: Cluster) -> None:
    now = timezone.now()
    make_queue_offset(make_group(cluster, "stalled", now=now, verdict="stalled"), "orders", 0, now=now)
    make_queue_offset(make_group(cluster, "looked-at", now=now), "refunds", 0, now=now)
    make_queue_offset(make_group(cluster, "fine", now=now), "bills", 0, now=now)
    note_looked_at(cluster.groups.get(name="looked-at"), now)
    found = polling_cycle.urgent(cluster, now + timedelta(seconds=40))
    assert found == Urgent(groups=("looked-at", "stalled"), topics=("refunds", "orders"), looked_at_count=1)
    assert polling_cycle.urgent(cluster, now + LOOKED_AT_FOR).groups == ("stalled",)


def test_lag_that_appears_between_two_samples_waits_at_least_since_the_second(
    cluster: Cluster, broker: ScriptedBroker
) -> None:
    first_at = timezone.now()
    polling_cycle.poll_once(cluster, first_at)
    broker.tables.ends[QUEUE] = TopicOffset(min_offset=0, max_offset=25)
    second_at = first_at + timedelta(seconds=15)
    polling_cycle.poll_once(cluster, second_at)
    group = Group.objects.get()
    assert (group.lag, group.behind_method) == (15, "observed")
    assert group.behind_since is not None
    assert abs(group.behind_since - second_at) < timedelta(seconds=1)
    assert group.in_per_s == 1.0
    assert group.out_per_s == 0


def test_next_message_of_a_group_that_somebody_looks_at_is_read_once_for_its_store_time(
    cluster: Cluster, broker: ScriptedBroker
) -> None:
    first_at = timezone.now()
    polling_cycle.poll_once(cluster, first_at)
    note_looked_at(Group.objects.get(), first_at)
    broker.tables.ends[QUEUE] = TopicOffset(min_offset=0, max_offset=25)
    stored_at = [first_at.replace(microsecond=0) + timedelta(seconds=3, milliseconds=ms) for ms in (120, 470)]
    for queue_offset, moment in zip((10, 12), stored_at, strict=True):
        broker.tables.stored_at_ms["orders", 0, queue_offset] = round(moment.timestamp() * 1000)

    def read(seconds: int) -> tuple[object, str, int]:
        polling_cycle.poll_once(cluster, first_at + timedelta(seconds=seconds))
        group = Group.objects.get()
        return group.behind_since, group.behind_method, broker.asked.count("PULL_MESSAGE")

    assert read(15) == (stored_at[0], "store_time", 1)
    assert read(30) == (stored_at[0], "store_time", 1), "what was read holds while the offset stands"
    broker.tables.committed[("orders", "billing")] = {0: 12}
    assert read(45) == (stored_at[1], "store_time", 2)
    assert Group.objects.get().behind.told_method == "exact"


def test_next_message_that_the_broker_does_not_give_waits_as_samples_say(
    cluster: Cluster, broker: ScriptedBroker
) -> None:
    first_at = timezone.now()
    polling_cycle.poll_once(cluster, first_at)
    note_looked_at(Group.objects.get(), first_at)
    broker.tables.ends[QUEUE] = TopicOffset(min_offset=0, max_offset=25)
    polling_cycle.poll_once(cluster, first_at + timedelta(seconds=15))
    cluster.refresh_from_db()
    assert Group.objects.get().behind.told_method == "from_samples"
    assert cluster.state == "reachable"


@pytest.mark.parametrize("odd", [b"", b"\0\0\0\7no message"], ids=["is not given", "cannot be decoded"])
def test_next_message_without_store_time_is_not_read_again_until_the_offset_moves(
    cluster: Cluster, broker: ScriptedBroker, odd: bytes
) -> None:
    first_at = timezone.now()
    polling_cycle.poll_once(cluster, first_at)
    note_looked_at(Group.objects.get(), first_at)
    broker.tables.ends[QUEUE] = TopicOffset(min_offset=0, max_offset=25)
    broker.tables.odd_answers["orders", 0, 10] = odd
    read = []
    for number, committed_offset in enumerate((10, 10, 10, 12, 12)):
        broker.tables.committed[("orders", "billing")] = {0: committed_offset}
        cluster.refresh_from_db()
        polling_cycle.poll_once(cluster, first_at + timedelta(seconds=15 * number))
        read.append(broker.asked.count("PULL_MESSAGE"))
    assert read == [1, 1, 1, 2, 2]


@pytest.mark.parametrize(("budget", "turn_s"), [(400, 15), (8, 60)], ids=["every cycle", "every fourth cycle"])
def test_group_whose_offset_stands_and_whose_member_says_nothing_is_stalled_two_turns_after_the_limit(
    cluster: Cluster, broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch, budget: int, turn_s: int
) -> None:
    monkeypatch.setattr(polling_cycle, "poll", partial(poll, budget=budget))
    for number in range(9):
        broker.tables.topics[f"other-{number}"] = TopicConfig(topic_name=f"other-{number}")
    begun = timezone.now()

    def verdict(seconds: int) -> str:
        cluster.refresh_from_db()
        polling_cycle.poll_once(cluster, begun + timedelta(seconds=seconds))
        return Group.objects.get().verdict

    came_s = 2 * turn_s
    before = [verdict(seconds) for seconds in range(0, came_s, 15)]
    assert "stalled" not in before
    broker.tables.ends[QUEUE] = TopicOffset(min_offset=0, max_offset=25)
    after = {seconds: verdict(came_s + seconds) for seconds in range(0, STALLED_AFTER_S + 2 * turn_s + 1, 15)}
    assert after[STALLED_AFTER_S + 2 * turn_s] == "stalled"
    assert not [seconds for seconds, word in after.items() if word == "stalled" and seconds < STALLED_AFTER_S]
    broker.tables.committed[("orders", "billing")] = {0: 25}
    mended = [verdict(came_s + STALLED_AFTER_S + 2 * turn_s + seconds) for seconds in range(15, 2 * turn_s + 16, 15)]
    assert mended[-1] == "ok", "nothing waits any more"


def test_unchanged_rows_are_seen_again(cluster: Cluster) -> None:
    first_at = timezone.now()
    polling_cycle.poll_once(cluster, first_at)
    later = first_at + timedelta(seconds=15)
    polling_cycle.poll_once(cluster, later)
    assert QueueOffset.objects.get().seen_at == later
    assert Group.objects.get().offsets_seen_at == later


def test_group_of_which_nothing_moved_is_not_compared_again(cluster: Cluster) -> None:
    """Shown by a row that somebody changed: the digest says that rows and brokers agree."""
    polling_cycle.poll_once(cluster, timezone.now())
    QueueOffset.objects.update(committed_offset=3)
    polling_cycle.poll_once(cluster, timezone.now())
    assert QueueOffset.objects.get().committed_offset == 3
    Group.objects.update(committed_digest=0)
    polling_cycle.poll_once(cluster, timezone.now())
    assert QueueOffset.objects.get().committed_offset == 10


def test_topic_that_is_made_anew_has_its_readers_compared_again(cluster: Cluster, broker: ScriptedBroker) -> None:
    polling_cycle.poll_once(cluster, timezone.now())
    config = broker.tables.topics.pop("orders")
    polling_cycle.poll_once(cluster, timezone.now())
    assert not QueueOffset.objects.exists()
    broker.tables.topics["orders"] = config
    polling_cycle.poll_once(cluster, timezone.now())
    assert QueueOffset.objects.get().committed_offset == 10


def test_members_found_and_missed_between_two_samples_are_events(cluster: Cluster, broker: ScriptedBroker) -> None:
    polling_cycle.poll_once(cluster, timezone.now())
    broker.tables.members["billing"] = members("c2", expression="A")
    polling_cycle.poll_once(cluster, timezone.now() + timedelta(seconds=15))
    kinds = set(RebalanceEvent.objects.values_list("kind", "client_id", "source"))
    assert kinds == {("joined", "c2", "poll"), ("gone", "c1", "poll")}, "the first sample has nothing to compare with"
    assert Member.objects.get(client_id="c1").left_at is not None
    assert Subscription.objects.get(ended_at=None).expression == "A"


def test_topic_and_group_that_are_gone_are_deleted(cluster: Cluster, broker: ScriptedBroker) -> None:
    polling_cycle.poll_once(cluster, timezone.now())
    broker.tables.topics.clear()
    broker.tables.groups.clear()
    broker.tables.committed.clear()
    polling_cycle.poll_once(cluster, timezone.now())
    assert not Topic.objects.exists()
    assert not Group.objects.exists()


def test_broker_that_fails_deletes_nothing_and_is_named(cluster: Cluster, broker: ScriptedBroker) -> None:
    polling_cycle.poll_once(cluster, timezone.now())
    synced_at = Cluster.objects.get().last_synced_at
    broker.further_masters = {"broker-b": "127.0.0.1:1"}
    broker.tables.topics.clear()
    polling_cycle.poll_once(cluster, timezone.now())
    cluster.refresh_from_db()
    assert (cluster.state, cluster.last_synced_at) == ("partial", synced_at)
    assert "127.0.0.1:1" in cluster.last_error
    assert Topic.objects.exists()
    assert cluster.brokers.get(name="broker-b").seen_at is None


def test_broker_whose_name_server_is_silent_keeps_its_rows(cluster: Cluster, broker: ScriptedBroker) -> None:
    with ScriptedBroker(is_watched=False, name="broker-b") as other:
        other.tables.topics["refunds"] = TopicConfig(topic_name="refunds")
        cluster.namesrv = f"{broker.address};{other.address}"
        cluster.save()
        polling_cycle.poll_once(cluster, timezone.now())
        assert set(Topic.objects.values_list("name", flat=True)) == {"orders", "refunds"}
        other.stop()
        polling_cycle.poll_once(cluster, timezone.now())
        cluster.refresh_from_db()
        assert cluster.state == "partial"
        assert other.address in cluster.last_error
        assert Topic.objects.filter(name="refunds").exists()
        assert cluster.brokers.filter(name="broker-b").exists()
        other.start()


def test_cluster_that_does_not_answer_says_why_and_keeps_its_rows(cluster: Cluster, broker: ScriptedBroker) -> None:
    polling_cycle.poll_once(cluster, timezone.now())
    broker.stop()
    polling_cycle.poll_once(cluster, timezone.now())
    cluster.refresh_from_db()
    assert cluster.state == "unreachable"
    assert broker.address in cluster.last_error
    assert Group.objects.exists()


def test_cluster_that_comes_back_is_asked_again_whether_it_can_be_followed(
    cluster: Cluster, broker: ScriptedBroker
) -> None:
    broker.stop()
    polling_cycle.poll_once(cluster, timezone.now())
    broker.start()
    polling_cycle.poll_once(cluster, timezone.now())
    cluster.refresh_from_db()
    assert (cluster.state, cluster.kind) == ("reachable", "")


def test_silence_is_a_gap_in_the_history_and_not_a_straight_line(cluster: Cluster) -> None:
    first_at = timezone.now()
    polling_cycle.poll_once(cluster, first_at)
    cluster.refresh_from_db()
    polling_cycle.poll_once(cluster, first_at + timedelta(minutes=10))
    lags = [sample.lag for sample in history.unpack(LagHistory.objects.get().samples)]
    assert lags == [None, 0]
    cluster.refresh_from_db()
    assert [sample.lag for sample in history.unpack(cluster.lag_history)] == [None, 0]
