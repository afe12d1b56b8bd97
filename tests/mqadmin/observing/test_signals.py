"""What a further subject gets to hear when it connects a receiver, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.db import connection, transaction
from django.dispatch import Signal
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group, QueueOffset, Topic
from mqadmin.observing import synchroniser
from mqadmin.observing.observation import (
    CommitObserved,
    GroupObserved,
    MemberObserved,
    Observation,
    QueueObserved,
    TopicObserved,
)
from mqadmin.observing.reachability import note_reachable, note_unreachable
from mqadmin.observing.signals import (
    Event,
    GroupsChanged,
    GroupsCommitted,
    ReachabilityChanged,
    RebalanceObserved,
    TopicsChanged,
    groups_changed,
    groups_committed,
    reachability_changed,
    rebalance_observed,
    topics_changed,
)
from remoting.wire.bodies.message_queue import MessageQueue

pytestmark = pytest.mark.django_db

NOW = timezone.now()
QUEUE = MessageQueue("orders", "broker-a", 0)
SIGNALS = (topics_changed, groups_changed, groups_committed, rebalance_observed, reachability_changed)
Receive = Callable[[Callable[[Event], int | None]], None]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="local", namesrv="127.0.0.1:9876", kind="ours")


@pytest.fixture
def receive() -> Iterator[Receive]:
    """Connects to all signals, until the test ends."""
    connected: list[tuple[Signal, Callable[..., int | None]]] = []

    def connect(handle: Callable[[Event], int | None]) -> None:
        def receiver(event: Event, **_: object) -> int | None:
            return handle(event)

        for signal in SIGNALS:
            signal.connect(receiver, weak=False)
            connected.append((signal, receiver))

    yield connect
    for signal, receiver in connected:
        signal.disconnect(receiver)


@pytest.fixture
def events(receive: Receive) -> list[Event]:
    heard: list[Event] = []

    def note(event: Event) -> None:
        assert connection.in_atomic_block
        heard.append(event)

    receive(note)
    return heard


def snapshot() -> Observation:
    member = MemberObserved(client_id="c1", address="10.0.0.7:1", language="JAVA", version=493)
    return Observation(
        at=NOW,
        is_complete=True,
        of_broker="broker-a",
        topics=(TopicObserved("orders", 1, 1, 6),),
        queues=(QueueObserved(QUEUE, 0, 10, None),),
        groups=(GroupObserved(name="billing", members=(member,), subscriptions={}, owners={}),),
        committed=(CommitObserved("billing", QUEUE, 10),),
    )


def progress(end: int = 10, committed: int | None = None) -> Observation:
    return Observation(
        at=NOW,
        is_complete=False,
        of_broker="broker-a",
        queues=(QueueObserved(QUEUE, 0, end, None),) if end != 10 else (),
        committed=() if committed is None else (CommitObserved("billing", QUEUE, committed),),
    )


def apply(cluster: Cluster, observation: Observation) -> int:
    return synchroniser.apply(cluster, observation, is_watched=True)


def test_snapshot_names_its_topics_and_groups(cluster: Cluster, events: list[Event]) -> None:
    apply(cluster, snapshot())
    group, topic = Group.objects.get(), Topic.objects.get()
    changed, topics = events
    assert isinstance(changed, GroupsChanged)
    assert list(changed.group_ids) == [group.pk]
    assert isinstance(topics, TopicsChanged)
    assert (list(topics.topic_ids), list(topics.grown)) == ([topic.pk], []), "all groups are named anyway"


def test_queue_that_grows_is_published_for_its_topic_alone(cluster: Cluster, events: list[Event]) -> None:
    apply(cluster, snapshot())
    rows = list(QueueOffset.objects.values())
    events.clear()
    apply(cluster, progress(end=25))
    (topics,) = events
    assert isinstance(topics, TopicsChanged)
    assert list(topics.grown) == ["orders"]
    assert list(QueueOffset.objects.values()) == rows, "its readers' rows are not rewritten"


def test_commit_is_published_for_its_group_alone(cluster: Cluster, events: list[Event]) -> None:
    apply(cluster, snapshot())
    events.clear()
    apply(cluster, progress(committed=9))
    (committed,) = events
    assert isinstance(committed, GroupsCommitted)
    assert list(committed.group_ids) == [Group.objects.get().pk]


def test_members_that_came_and_went_are_published_once_there_is_something_to_compare_with(
    cluster: Cluster, events: list[Event]
) -> None:
    apply(cluster, snapshot())
    apply(cluster, snapshot())
    (rebalance,) = [event for event in events if isinstance(event, RebalanceObserved)]
    assert (rebalance.is_sampled, list(rebalance.changes), list(rebalance.changes["billing"].joined)) == (
        True,
        ["billing"],
        [],
    )


def test_reachability_is_published_when_it_changes(cluster: Cluster, events: list[Event]) -> None:
    note_reachable(cluster, cluster.kind, NOW)  # type: ignore[arg-type]
    note_reachable(cluster, cluster.kind, NOW)  # type: ignore[arg-type]
    note_unreachable(cluster, "gone", NOW)
    assert [type(event) for event in events] == [ReachabilityChanged, ReachabilityChanged]


def test_rows_of_receivers_count(cluster: Cluster, receive: Receive) -> None:
    apply(cluster, snapshot())
    before = apply(cluster, progress(end=25))
    receive(lambda _: 1000)
    assert apply(cluster, progress(end=26)) == before + 1000


def test_receiver_that_fails_leaves_the_rows_as_they_were(cluster: Cluster, receive: Receive) -> None:
    def fail(_: Event) -> None:
        raise ZeroDivisionError

    receive(fail)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        apply(cluster, snapshot())
    assert not Topic.objects.exists()
