"""Sampling: what is asked within a budget, and what the answers become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from mqadmin.observing import polling
from mqadmin.observing.exact_waiting import Unreadable
from mqadmin.observing.gateway import GatewayError, ask
from mqadmin.observing.observation import CommitObserved, SubscriptionKey, TopicObserved
from mqadmin.observing.polling import REQUESTS_PER_CYCLE_MAX, Polled, poll
from mqadmin.observing.turns import TURN_CYCLES, Cursors, Urgent
from remoting.wire.bodies.groups import ClientConnection, ConsumerConnection, SubscriptionGroupConfig
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicConfig, TopicOffset
from tests.support.scripted_broker import BROKER_NAME, ScriptedBroker

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
NOBODY_LISTENS = "127.0.0.1:1"


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker(is_watched=False) as broker:
        yield broker


def sampled(broker: ScriptedBroker, cursors: Cursors = Cursors(), budget: int = 100) -> Polled:  # noqa: B008
    return ask(broker.address, lambda gateway: poll(gateway, cursors, NOW, budget))


def give(broker: ScriptedBroker, *topics: str, groups: tuple[str, ...] = ()) -> None:
    for topic in topics:
        broker.tables.topics[topic] = TopicConfig(topic_name=topic, read_queue_nums=4, write_queue_nums=8)
        broker.tables.ends[MessageQueue(topic, BROKER_NAME, 0)] = TopicOffset(min_offset=1, max_offset=9)
    for group in groups:
        broker.tables.groups[group] = SubscriptionGroupConfig(group_name=group)


def test_answers_become_facts(broker: ScriptedBroker) -> None:
    give(broker, "orders", groups=("billing",))
    broker.tables.committed[("orders", "billing")] = {0: 5}
    broker.tables.members["billing"] = ConsumerConnection(
        connection_set=[ClientConnection(client_id="c1", client_addr="10.0.0.7:1", language="JAVA", version=493)],
        message_model="CLUSTERING",
        subscription_table={"orders": SubscriptionData(topic="orders", sub_string="A", sub_version=3)},
    )
    found = sampled(broker)
    assert found.error is None
    assert found.observation.is_complete
    assert found.rocketmq_name == "DefaultCluster"
    assert found.observation.topics == (TopicObserved("orders", 4, 8, 6),)
    assert found.observation.committed == (CommitObserved("billing", MessageQueue("orders", BROKER_NAME, 0), 5),)
    assert [(queue.min_offset, queue.max_offset) for queue in found.observation.queues] == [(1, 9)]
    (group,) = found.observation.groups
    assert [member.client_id for member in group.members or ()] == ["c1"]
    assert group.subscriptions == {SubscriptionKey("", "orders", "A", "TAG"): 3}
    assert group.owners is None, "Apache was not asked who pulls"


def test_group_that_is_offline_has_no_members_instead_of_unknown_ones(broker: ScriptedBroker) -> None:
    give(broker, groups=("billing",))
    assert sampled(broker).observation.groups[0].members == ()


def test_group_that_only_committed_offsets_is_known_too(broker: ScriptedBroker) -> None:
    broker.tables.committed[("orders", "tool")] = {0: 5}
    (group,) = sampled(broker).observation.groups
    assert (group.name, group.settings, group.members) == ("tool", None, None)


def test_retry_topic_is_asked_for_only_when_somebody_reads_it(broker: ScriptedBroker) -> None:
    give(broker, "%RETRY%idle", "%RETRY%busy")
    broker.tables.committed[("%RETRY%busy", "busy")] = {0: 5}
    assert [fact.queue.topic for fact in sampled(broker).observation.queues] == ["%RETRY%busy"]


def test_cycle_stays_within_its_budget_and_the_next_goes_on(broker: ScriptedBroker) -> None:
    give(broker, *(f"t{number:02}" for number in range(20)), groups=tuple(f"g{number:02}" for number in range(20)))
    first = sampled(broker, budget=16)
    assert first.request_count <= 16
    assert len(broker.asked) == first.request_count
    assert first.cursors == Cursors(topic="t05", group="g05")
    second = sampled(broker, first.cursors, budget=16)
    assert second.observation.queues[0].queue.topic == "t06"
    assert asked_groups(second) == {f"g{number:02}" for number in range(6, 12)}


def test_broker_that_does_not_answer_is_named_and_the_rest_counts(broker: ScriptedBroker) -> None:
    give(broker, "orders", groups=("billing",))
    broker.further_masters = {"broker-b": NOBODY_LISTENS}
    found = sampled(broker)
    assert found.error is not None
    assert NOBODY_LISTENS in str(found.error)
    assert not found.observation.is_complete
    assert found.observation.topics == (), "a sum over some brokers is no sum"
    assert [bool(row.error) for row in found.brokers] == [False, True]
    assert len(found.observation.queues) == 1


def test_cluster_without_a_name_server_says_which(broker: ScriptedBroker) -> None:
    with pytest.raises(GatewayError, match=NOBODY_LISTENS):
        ask(NOBODY_LISTENS, lambda gateway: gateway.brokers())


def test_address_that_is_none_is_refused_in_words() -> None:
    with pytest.raises(GatewayError, match="host:port"):
        ask("nonsense", lambda gateway: gateway.brokers())
    with pytest.raises(GatewayError, match="name server"):
        ask(" ", lambda gateway: gateway.brokers())


def in_cycles(
    broker: ScriptedBroker, count: int, urgent: Urgent | None = None, budget: int = REQUESTS_PER_CYCLE_MAX
) -> list[Polled]:
    """Samples so many times, each cycle where the one before stopped."""
    cursors, cycles = Cursors(), []
    for _ in range(count):
        at = cursors
        cycles.append(
            ask(broker.address, lambda gateway, at=at: poll(gateway, at, NOW, budget, urgent=urgent))  # type: ignore[misc]
        )
        cursors = cycles[-1].cursors
    return cycles


def asked_groups(cycle: Polled) -> set[str]:
    return {group.name for group in cycle.observation.groups if group.members is not None}


@pytest.mark.parametrize(
    ("group_count", "cycle_count"), [(100, 2), pytest.param(1000, TURN_CYCLES, marks=pytest.mark.sweep)]
)
def test_cycle_costs_in_the_order_of_brokers_and_topics_and_all_groups_have_their_turn_in_90_s(
    broker: ScriptedBroker, group_count: int, cycle_count: int
) -> None:
    topics = [f"topic-{number}" for number in range(70)]
    groups = tuple(f"group-{number:04}" for number in range(group_count))
    give(broker, *topics, groups=groups)
    for group in groups:
        broker.tables.committed[("topic-0", group)] = {0: 5}
    cycles = in_cycles(broker, cycle_count)
    names = Counter(broker.asked)
    tables = names["GET_ALL_TOPIC_CONFIG"] + names["GET_ALL_SUBSCRIPTIONGROUP_CONFIG"]
    assert (tables, names["GET_ALL_CONSUMER_OFFSET"]) == (2 * len(cycles), len(cycles)), "offsets are one request"
    of_groups = max(len(topics) + 1, -(-group_count // TURN_CYCLES))
    assert max(cycle.request_count for cycle in cycles) <= 1 + 3 + len(topics) + of_groups
    assert all(len(cycle.observation.committed) == group_count for cycle in cycles)
    assert set().union(*(asked_groups(cycle) for cycle in cycles)) == set(groups), "everybody's turn came"


def test_groups_that_matter_and_their_topics_are_asked_in_every_cycle_and_the_others_in_turn(
    broker: ScriptedBroker,
) -> None:
    topics = tuple(f"topic-{number:03}" for number in range(100))
    groups = tuple(f"group-{number:03}" for number in range(100))
    give(broker, *topics, groups=groups)
    urgent = Urgent(groups=("group-099", "group-050", "no-longer-there"), topics=("topic-098",))
    cycles = in_cycles(broker, 9, urgent, budget=46)
    assert max(cycle.request_count for cycle in cycles) <= 46
    for cycle in cycles:
        assert asked_groups(cycle) >= {"group-099", "group-050"}
        assert "topic-098" in {queue.queue.topic for queue in cycle.observation.queues}
    assert set().union(*(asked_groups(cycle) for cycle in cycles)) == set(groups)
    everything = Urgent(groups=groups, topics=topics)
    turns = [asked_groups(cycle) for cycle in in_cycles(broker, 3, everything, budget=46)]
    assert len(set.intersection(*turns)) < len(turns[0]), "the half that is not urgent goes on"


@pytest.mark.parametrize("odd", [None, b"\0\0\0\7no message"], ids=["does not come", "cannot be decoded"])
def test_next_message_that_cannot_be_read_costs_no_more_than_its_own_store_time(
    broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch, odd: bytes | None
) -> None:
    monkeypatch.setattr(polling, "STORE_TIMES_TIMEOUT_S", 0.3)
    give(broker, "orders", groups=("billing",))
    broker.tables.committed[("orders", "billing")] = {0: 5}
    broker.tables.odd_answers["orders", 0, 5] = odd
    broker.tables.members["billing"] = ConsumerConnection(connection_set=[ClientConnection(client_id="c1")])
    urgent = Urgent(groups=("billing",), topics=("orders",))
    found = ask(broker.address, lambda gateway: poll(gateway, Cursors(), NOW, urgent=urgent))
    assert broker.asked[-1] == "PULL_MESSAGE", "members are asked before"
    assert found.error is None
    assert found.observation.is_complete
    assert [row.error for row in found.brokers] == [""]
    assert asked_groups(found) == {"billing"}
    unreadable = [] if odd is None else [Unreadable(MessageQueue("orders", BROKER_NAME, 0), 5)]
    assert list(found.unreadable) == unreadable, "what did not come may come the next time"


def test_next_message_that_cannot_be_decoded_leaves_the_others_of_its_broker_their_store_times(
    broker: ScriptedBroker,
) -> None:
    give(broker, "orders", groups=("billing",))
    broker.tables.committed[("orders", "billing")] = {0: 5, 1: 6}
    broker.tables.ends[MessageQueue("orders", BROKER_NAME, 1)] = TopicOffset(min_offset=1, max_offset=9)
    broker.tables.odd_answers["orders", 0, 5] = b"\0\0\0\7no message"
    broker.tables.stored_at_ms["orders", 1, 6] = 1_700_000_000_000
    urgent = Urgent(groups=("billing",), topics=("orders",))
    found = ask(broker.address, lambda gateway: poll(gateway, Cursors(), NOW, urgent=urgent))
    assert [one.queue.queue_id for one in found.observation.committed if one.behind_since is not None] == [1]
