"""Sampling: what is asked within a budget, and what the answers become."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from mqadmin.observing.gateway import GatewayError, ask
from mqadmin.observing.observation import CommitObserved, SubscriptionKey, TopicObserved
from mqadmin.observing.polling import Cursors, Sample, in_turn, sample
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


def sampled(broker: ScriptedBroker, cursors: Cursors = Cursors(), budget: int = 100) -> Sample:  # noqa: B008
    return ask(broker.address, lambda gateway: sample(gateway, cursors, NOW, budget))


def give(broker: ScriptedBroker, *topics: str, groups: tuple[str, ...] = ()) -> None:
    for topic in topics:
        broker.tables.topics[topic] = TopicConfig(topic_name=topic, read_queue_nums=4, write_queue_nums=8)
        broker.tables.ends[MessageQueue(topic, BROKER_NAME, 0)] = TopicOffset(min_offset=1, max_offset=9)
    for group in groups:
        broker.tables.groups[group] = SubscriptionGroupConfig(group_name=group)


def test_everybody_gets_a_turn() -> None:
    names = ["a", "b", "c", "d"]
    assert in_turn(names, "", 2) == ["a", "b"]
    assert in_turn(names, "b", 3) == ["c", "d", "a"]
    assert in_turn(names, "d", 9) == ["a", "b", "c", "d"]
    assert in_turn(names, "a", 0) == []


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
    assert first.cursors == Cursors(topic="t07", group="g03")
    second = sampled(broker, first.cursors, budget=16)
    assert second.observation.queues[0].queue.topic == "t08"
    assert {group.name for group in second.observation.groups if group.members is not None} == {
        "g04",
        "g05",
        "g06",
        "g07",
    }


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
