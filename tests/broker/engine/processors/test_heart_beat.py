"""Heartbeats: groups and retry topics come to be, members register, version 2 saves its subscriptions."""

from __future__ import annotations

import pytest

from broker.engine.processors.heart_beat import HeartBeat
from broker.engine.processors.unregister_client import UnregisterClient
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts, save_group

# Below it Java clients believe that the broker cannot filter by SQL.
V4_1_0 = 232


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


def beat(parts: BrokerParts, *groups: str, topics: tuple[str, ...] = ("orders",), **fields) -> Command:
    wanted = [SubscriptionData(topic=topic, sub_version=1) for topic in topics]
    consumers = [ConsumerData(group_name=group, subscription_data_set=wanted) for group in groups]
    data = HeartbeatData(client_id="me@1", consumer_data_set=consumers, **fields)
    command = Command(code=RequestCode.HEART_BEAT, body=write_body(data), version=479)
    return parts.ask(HeartBeat(parts.topics, parts.groups, parts.members), command)


async def test_a_heartbeat_makes_the_group_and_its_retry_topic(parts) -> None:
    answer = beat(parts, "billing")
    assert answer.code == ResponseCode.SUCCESS
    assert answer.version >= V4_1_0
    assert answer.ext_fields == {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"}
    assert parts.groups.exists("billing")
    retry = parts.topics.find("%RETRY%billing")
    assert (retry.read_queue_nums, retry.write_queue_nums, retry.perm) == (1, 1, 6)
    assert parts.members.client_ids("billing") == ["me@1"]


async def test_a_retry_topic_has_as_many_queues_as_its_group_says_and_none_where_it_says_none(parts) -> None:
    save_group(parts.groups, SubscriptionGroupConfig(group_name="billing", retry_queue_nums=3))
    save_group(parts.groups, SubscriptionGroupConfig(group_name="mailing", retry_queue_nums=0))
    beat(parts, "billing", "mailing")
    assert parts.topics.find("%RETRY%billing").read_queue_nums == 3
    assert parts.topics.find("%RETRY%mailing") is None
    assert parts.members.client_ids("mailing") == ["me@1"]


async def test_a_group_that_may_not_be_is_left_out_and_the_others_register(parts) -> None:
    assert beat(parts, "not a name", "billing").code == ResponseCode.SUCCESS
    assert [group.group for group in parts.members.groups()] == ["billing"]
    assert not parts.groups.exists("not a name")


async def test_a_producers_heartbeat_registers_it(parts) -> None:
    beat(parts, producer_data_set=[ProducerData(group_name="sellers")])
    assert [client.client_id for client in parts.members.producers("sellers")] == ["me@1"]


async def test_version_2_keeps_subscriptions_and_tells_whether_another_fingerprint_was_known(parts) -> None:
    first = beat(parts, "billing", heartbeat_fingerprint=7)
    short = beat(parts, "billing", topics=(), heartbeat_fingerprint=7, without_sub=True)
    other = beat(parts, "billing", heartbeat_fingerprint=8)
    told = [answer.ext_fields["IS_SUB_CHANGE"] for answer in (first, short, other)]
    assert told == ["false", "false", "true"]
    assert set(parts.members.find("billing").subscriptions) == {"orders"}


async def test_version_2_asks_a_member_for_the_subscriptions_that_it_never_told_here(parts) -> None:
    """As after a restart of the broker."""
    short = beat(parts, "billing", topics=(), heartbeat_fingerprint=7, without_sub=True)
    whole = beat(parts, "billing", heartbeat_fingerprint=7)
    assert [answer.ext_fields["IS_SUB_CHANGE"] for answer in (short, whole)] == ["true", "false"]
    assert set(parts.members.find("billing").subscriptions) == {"orders"}


@pytest.mark.parametrize("body", [b"", b"{torn", b"[]", b'{"consumerDataSet":7}'])
async def test_a_heartbeat_that_cannot_be_read_is_refused_and_registers_nobody(parts, body) -> None:
    processor = HeartBeat(parts.topics, parts.groups, parts.members)
    answer = parts.ask(processor, Command(code=RequestCode.HEART_BEAT, body=body))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert parts.members.groups() == []


async def test_a_goodbye_is_for_the_group_that_it_names(parts) -> None:
    beat(parts, "billing", "mailing", producer_data_set=[ProducerData(group_name="sellers")])
    fields = {"clientID": "me@1", "consumerGroup": "billing", "producerGroup": "sellers"}
    goodbye = Command(code=RequestCode.UNREGISTER_CLIENT, ext_fields=fields)
    assert parts.ask(UnregisterClient(parts.members), goodbye).code == ResponseCode.SUCCESS
    assert [group.group for group in parts.members.groups()] == ["mailing"]
    assert parts.members.producers("sellers") == []


async def test_many_new_groups_are_written_down_with_one_change_each_for_groups_and_topics(parts) -> None:
    """A change waits for the disk, and everybody waits with it."""

    def versions() -> tuple[int, int]:
        return parts.groups.table.data_version.counter, parts.topics.table.data_version.counter

    groups_before, topics_before = versions()
    groups = [f"group-{number}" for number in range(50)]
    assert beat(parts, *groups, "not a name", groups[0]).code == ResponseCode.SUCCESS
    assert versions() == (groups_before + 1, topics_before + 1)
    assert all(parts.topics.find(f"%RETRY%{group}") and parts.groups.exists(group) for group in groups)
    assert len(parts.members.groups()) == 50
    beat(parts, *groups)
    assert versions() == (groups_before + 1, topics_before + 1)
