"""Several of our own brokers in one cluster, each with its own name server: each is watched, and all share the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group, Member, QueueOffset, Subscription, Topic, TopicQueue
from mqadmin.observing.pace import Pace
from mqadmin.rebalances.models import RebalanceEvent
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.bodies.watch import CommittedState, GroupState, MemberState, QueueState, WatchBody, WatchEvent
from tests.support.follower import follower_thread
from tests.support.scripted_broker import ScriptedBroker, empty_body
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

STOPPED_WITHIN_S = 120.0
QUICK = Pace(watch_wait_ms=100, cycle_s_min=0.01, tick_s=0.1, backoff_s=(0.05,))


def has(*members: str, topics: tuple[str, ...] = ("orders",), expression: str = "*", end: int = 10) -> WatchBody:
    """A broker with these topics of two queues each, and the group billing that reads orders."""
    body = empty_body()
    orders = SubscriptionData(topic="orders", sub_string=expression, sub_version=1)
    body.topics = [TopicConfig(topic_name=name, read_queue_nums=2, write_queue_nums=2, perm=6) for name in topics]
    body.queues = [QueueState(topic=name, queue_id=0, min_offset=0, max_offset=end) for name in topics]
    body.committed = [CommittedState(group="billing", topic="orders", queue_id=0, committed_offset=4)]
    body.groups = [billing(*members, subscription=orders)]
    return body


def billing(*members: str, subscription: SubscriptionData) -> GroupState:
    return GroupState(
        config=SubscriptionGroupConfig(group_name="billing"),
        message_model="CLUSTERING",
        consume_type="CONSUME_PASSIVELY",
        members=[
            MemberState(
                client_id=client_id,
                client_addr="10.0.0.7:5000",
                language="PYTHON",
                version=493,
                online_since_ms=1_700_000_000_000,
                last_heartbeat_ms=1_700_000_000_000,
                subscriptions=[subscription],
            )
            for client_id in members
        ],
        subscriptions=[subscription] if members else [],
    )


def news(kind: str, client_id: str, *members: str, revision: int = 2, expression: str = "*") -> WatchBody:
    body = empty_body()
    body.groups = has(*members, expression=expression).groups
    event = WatchEvent(
        revision=revision, at_ms=1_700_000_002_000, kind=kind, group="billing", client_id=client_id, topic="orders"
    )
    body.events = [event]
    return body


@pytest.fixture
def first() -> Iterator[ScriptedBroker]:
    with ScriptedBroker(is_watched=True, name="broker-a") as broker:
        broker.tell(has("both", "only-a", topics=("orders", "bills")))
        yield broker


@pytest.fixture
def second() -> Iterator[ScriptedBroker]:
    with ScriptedBroker(is_watched=True, name="broker-b") as broker:
        broker.tell(has("both", "only-b", topics=("orders", "refunds")))
        yield broker


@pytest.fixture
def cluster(first: ScriptedBroker, second: ScriptedBroker) -> Cluster:
    return Cluster.objects.create(name="shop", namesrv=f"{first.address};{second.address}")


@pytest.fixture
def followed(cluster: Cluster) -> Iterator[Cluster]:
    with follower_thread(stopped_within_s=STOPPED_WITHIN_S, pace=QUICK):
        wait_until(lambda: Cluster.objects.get().state == "reachable")
        yield cluster


def online() -> set[str]:
    return set(Member.objects.filter(left_at=None).values_list("client_id", flat=True))


def queues(topic: str) -> set[str]:
    return set(TopicQueue.objects.filter(topic__name=topic).values_list("broker_name", flat=True))


def counts(topic: str) -> int | None:
    return Topic.objects.values_list("read_queue_count", flat=True).get(name=topic)


def test_rows_hold_what_both_brokers_have(followed: Cluster) -> None:
    assert Cluster.objects.get().kind == "ours"
    assert {row.name: row.boot for row in followed.brokers.all()} == {"broker-a": "boot-1", "broker-b": "boot-1"}
    assert {name: counts(name) for name in ("orders", "bills", "refunds")} == {"orders": 4, "bills": 2, "refunds": 2}
    assert queues("orders") == {"broker-a", "broker-b"}
    group = Group.objects.get()
    assert online() == {"both", "only-a", "only-b"}
    assert group.member_count == 3
    wait_until(lambda: Group.objects.get().lag == 12, what="the lag on both brokers")
    in_force = Subscription.objects.filter(ended_at=None)
    assert {row.client_id: row.known_by for row in in_force} == {
        "": ["broker-a", "broker-b"],
        "both": ["broker-a", "broker-b"],
        "only-a": ["broker-a"],
        "only-b": ["broker-b"],
    }
    assert not RebalanceEvent.objects.exists(), "nobody was seen to join: they were there before"


def test_snapshot_of_one_broker_takes_back_its_own_word_alone(followed: Cluster, second: ScriptedBroker) -> None:
    second.stop()
    second.reboot(has("both", topics=("refunds",)))
    second.start()
    wait_until(lambda: queues("orders") == {"broker-a"})
    assert counts("orders") == 2
    assert set(Topic.objects.values_list("name", flat=True)) == {"orders", "bills", "refunds"}
    assert online() == {"both", "only-a"}
    assert Group.objects.get().member_count == 2


def test_topic_and_group_go_with_the_last_broker_that_has_them(
    followed: Cluster, first: ScriptedBroker, second: ScriptedBroker
) -> None:
    gone = empty_body()
    gone.gone_topics, gone.gone_groups = ["orders"], ["billing"]
    first.tell(gone)
    wait_until(lambda: queues("orders") == {"broker-b"})
    wait_until(lambda: online() == {"both", "only-b"})
    assert Group.objects.get().member_count == 2
    assert set(QueueOffset.objects.values_list("broker_name", flat=True)) == {"broker-b"}
    also_gone = empty_body()
    also_gone.gone_topics, also_gone.gone_groups = ["orders"], ["billing"]
    second.tell(also_gone)
    wait_until(lambda: not Group.objects.exists())
    assert not Topic.objects.filter(name="orders").exists()


def test_member_leaves_when_no_broker_knows_it_and_the_timeline_says_so_once(
    followed: Cluster, first: ScriptedBroker, second: ScriptedBroker
) -> None:
    first.tell(news("member_left", "both", "only-a"))
    wait_until(lambda: Member.objects.get(client_id="both").known_by == ["broker-b"])
    assert online() == {"both", "only-a", "only-b"}
    assert not RebalanceEvent.objects.exists()
    second.tell(news("member_left", "both", "only-b"))
    wait_until(RebalanceEvent.objects.exists)
    event = RebalanceEvent.objects.get()
    assert (event.kind, event.client_id, event.details) == ("left", "both", {"member_count": 2})
    assert online() == {"only-a", "only-b"}


def test_member_that_joins_at_two_brokers_joins_once(
    followed: Cluster, first: ScriptedBroker, second: ScriptedBroker
) -> None:
    first.tell(news("member_joined", "new", "both", "only-a", "new"))
    second.tell(news("member_joined", "new", "both", "only-b", "new"))
    wait_until(lambda: Member.objects.filter(client_id="new", known_by=["broker-a", "broker-b"]).exists())
    assert [(event.kind, event.details) for event in RebalanceEvent.objects.all()] == [("joined", {"member_count": 4})]


def test_changed_subscription_is_told_once(followed: Cluster, first: ScriptedBroker, second: ScriptedBroker) -> None:
    first.tell(news("subscription_changed", "both", "both", "only-a", expression="A"))
    wait_until(lambda: Subscription.objects.filter(expression="A", client_id="both").exists())
    second.tell(news("subscription_changed", "both", "both", "only-b", expression="A"))
    wait_until(lambda: not Subscription.objects.filter(expression="*", client_id="both", ended_at=None).exists())
    (event,) = RebalanceEvent.objects.filter(client_id="both")
    assert event.details["topics"] == [{"topic": "orders", "before": "*", "after": "A"}]


def test_broker_that_is_down_makes_only_its_own_rows_old(
    followed: Cluster, first: ScriptedBroker, second: ScriptedBroker
) -> None:
    second.stop()
    wait_until(lambda: Cluster.objects.get().state == "partial")
    first.tell(has("both", "only-a", topics=("orders", "bills"), end=50))
    wait_until(lambda: TopicQueue.objects.filter(max_offset=50, broker_name="broker-a").exists())
    row = Cluster.objects.with_freshness().get()
    assert list(row.brokers_away) == ["broker-b"]
    assert second.address in row.last_error
    assert second.address in row.brokers.get(name="broker-b").last_error
    assert row.brokers.get(name="broker-a").is_answering
    away_since = row.true_until(timezone.now(), ["broker-b"])
    assert away_since is not None

    def ages() -> dict[str, datetime]:
        # The follower's word reaches on; it may be writing its own at this moment.
        Cluster.objects.update(last_synced_at=timezone.now() + timedelta(hours=1))
        return {topic.name: topic.messages_figure.seen_at or away_since for topic in Topic.objects.all()}

    wait_until(lambda: ages()["bills"] > away_since + timedelta(minutes=30))
    # That of the broker that is down ends where it did.
    assert ages()["refunds"] == ages()["orders"] == away_since
    assert Cluster.objects.get().observed_until == away_since


def test_group_on_a_broker_that_is_down_is_unknown_until_it_is_back(
    followed: Cluster, first: ScriptedBroker, second: ScriptedBroker
) -> None:
    wait_until(lambda: Group.objects.get().lag == 12)
    second.stop()
    wait_until(lambda: Group.objects.get().verdict_rule == "broker_away", what="a verdict that says why")
    assert Group.objects.get().lag == 12, "the last known stays"
    second.reboot(has("both", "only-b", topics=("orders", "refunds")))
    second.start()
    wait_until(lambda: Cluster.objects.get().state == "reachable")
    wait_until(lambda: Group.objects.get().verdict_rule != "broker_away", what="a verdict as before")
    assert Cluster.objects.get().brokers_away == {}


def test_all_brokers_down_is_an_unreachable_cluster(
    followed: Cluster, first: ScriptedBroker, second: ScriptedBroker
) -> None:
    second.stop()
    wait_until(lambda: Cluster.objects.get().state == "partial")
    first.stop()
    wait_until(lambda: Cluster.objects.get().state == "unreachable")
    assert Topic.objects.count() == 3
    first.start()
    wait_until(lambda: Cluster.objects.get().state == "partial")
    second.start()
    wait_until(lambda: Cluster.objects.get().state == "reachable")


@pytest.mark.slow
def test_follower_that_takes_over_knows_since_when_a_broker_is_down(
    cluster: Cluster, first: ScriptedBroker, second: ScriptedBroker
) -> None:
    follow_until(lambda: Cluster.objects.get().state == "reachable")
    second.stop()
    follow_until(lambda: Cluster.objects.get().state == "partial")
    since = Cluster.objects.get().brokers_away
    asked = len(first.asked)
    follow_until(lambda: len(first.asked) > asked + 4)
    row = Cluster.objects.get()
    assert (row.state, row.brokers_away) == ("partial", since)
    assert row.brokers.count() == 2, "its name server is silent, so it may still be there"


def test_name_server_that_is_silent_from_the_beginning_is_named(first: ScriptedBroker) -> None:
    with ScriptedBroker(is_watched=True, name="broker-b") as late:
        late.tell(has("only-b"))
        late.stop()
        Cluster.objects.create(name="shop", namesrv=f"{first.address};{late.address}")
        with follower_thread(stopped_within_s=STOPPED_WITHIN_S, pace=QUICK):
            wait_until(lambda: Cluster.objects.get().state == "partial")
            assert late.address in Cluster.objects.get().last_error
            assert counts("orders") == 2
            late.start()
            wait_until(lambda: Cluster.objects.get().state == "reachable")
            assert counts("orders") == 4


@pytest.mark.slow
def test_broker_that_is_not_listed_any_more_takes_its_rows_with_it(cluster: Cluster, first: ScriptedBroker) -> None:
    follow_until(lambda: Cluster.objects.get().state == "reachable")
    Cluster.objects.update(namesrv=first.address)
    follow_until(lambda: not Topic.objects.filter(name="refunds").exists())
    assert queues("orders") == {"broker-a"}
    assert online() == {"both", "only-a"}
    assert cluster.brokers.count() == 1


@pytest.mark.slow
def test_cluster_with_other_name_servers_keeps_nothing_of_a_broker_that_they_do_not_list(
    cluster: Cluster, first: ScriptedBroker
) -> None:
    follow_until(lambda: Cluster.objects.get().state == "reachable")
    with ScriptedBroker(is_watched=True, name="broker-c") as third:
        third.tell(has("both", "only-c"))
        cluster.point_at(f"{first.address};{third.address}")
        follow_until(lambda: Cluster.objects.get().state == "reachable")
    assert set(Topic.objects.values_list("name", flat=True)) == {"orders", "bills"}
    assert (counts("orders"), queues("orders")) == (4, {"broker-a", "broker-c"})
    assert online() == {"both", "only-a", "only-c"}
    assert set(QueueOffset.objects.values_list("broker_name", flat=True)) == {"broker-a", "broker-c"}


@pytest.mark.slow
def test_renamed_broker_keeps_the_rows_of_its_topics_and_groups() -> None:
    with ScriptedBroker(is_watched=True, name="broker-a") as broker:
        broker.tell(has("c1"))
        Cluster.objects.create(name="shop", namesrv=broker.address)
        follow_until(lambda: Cluster.objects.get().state == "reachable")
        topic, group = Topic.objects.get(), Group.objects.get()
        broker.name = "broker-z"
        broker.reboot(has("c1"))
        follow_until(lambda: queues("orders") == {"broker-z"})
    assert (Topic.objects.get().pk, Group.objects.get().pk) == (topic.pk, group.pk)
    assert counts("orders") == 2
    assert set(QueueOffset.objects.values_list("broker_name", flat=True)) == {"broker-z"}


def test_name_server_that_answers_again_is_enough(first: ScriptedBroker) -> None:
    """Its broker is watched by then under the address that is known."""
    with ScriptedBroker(is_watched=True, name="broker-a") as spare:
        spare.further_masters = {"broker-a": first.address}
        spare.stop()
        Cluster.objects.create(name="shop", namesrv=f"{first.address};{spare.address}")
        with follower_thread(stopped_within_s=STOPPED_WITHIN_S, pace=QUICK):
            wait_until(lambda: Cluster.objects.get().state == "partial")
            spare.start()
            wait_until(lambda: Cluster.objects.get().state == "reachable")


def test_cluster_of_ours_and_of_apache_is_polled_and_says_so(first: ScriptedBroker) -> None:
    with ScriptedBroker(is_watched=False, name="broker-x") as apache:
        Cluster.objects.create(name="shop", namesrv=f"{first.address};{apache.address}")
        follow_until(lambda: Cluster.objects.get().kind == "mixed")


def test_two_brokers_of_one_name_are_told_apart_by_nobody(first: ScriptedBroker) -> None:
    with ScriptedBroker(is_watched=True, name="broker-a") as namesake:
        namesake.tell(has("c1"))
        Cluster.objects.create(name="shop", namesrv=f"{first.address};{namesake.address}")
        follow_until(lambda: Cluster.objects.get().state == "unreachable")
        error = Cluster.objects.get().last_error
        assert f"2 brokers are named broker-a ({first.address}, {namesake.address})" in error


def test_rows_from_before_several_brokers_were_watched_are_everybodys(cluster: Cluster) -> None:
    now = timezone.now()
    group = Group.objects.create(cluster=cluster, name="billing", member_count=2, members_seen_at=now, seen_at=now)
    for client_id in ("only-b", "gone-long-ago"):
        Member.objects.create(group=group, client_id=client_id, first_seen_at=now, seen_at=now)
    topic = Topic.objects.create(cluster=cluster, name="refunds", seen_at=now)
    TopicQueue.objects.create(topic=topic, broker_name="broker-b", queue_id=0, min_offset=0, max_offset=9, seen_at=now)
    cluster.brokers.create(name="broker-a", address="127.0.0.1:1")
    cluster.brokers.create(name="broker-b", address="127.0.0.1:1")
    follow_until(lambda: Cluster.objects.get().state == "reachable")
    assert Topic.objects.get(name="refunds").pk == topic.pk
    assert Group.objects.get().pk == group.pk
    assert Member.objects.get(client_id="only-b").left_at is None
    assert Member.objects.get(client_id="gone-long-ago").left_at is not None


@pytest.mark.slow
def test_what_following_costs_each_broker_is_counted(
    cluster: Cluster, first: ScriptedBroker, second: ScriptedBroker
) -> None:
    with follower_thread(stopped_within_s=STOPPED_WITHIN_S, pace=replace(QUICK, costs_s=0.2)):
        counted = cluster.request_costs
        wait_until(lambda: counted.filter(request_count__gt=5, byte_count__gt=100).count() == 2)
        assert not counted.filter(error_count__gt=0).exists()
        second.stop()
        wait_until(lambda: counted.get(address=second.address).error_count > 2)
        assert counted.get(address=first.address).error_count == 0


def follow_until(holds: Callable[[], object]) -> None:
    with follower_thread(stopped_within_s=STOPPED_WITHIN_S, pace=QUICK):
        wait_until(holds)
