"""Members and the one subscription table of a group: RocketMQ's rules, the surprising ones included."""

from __future__ import annotations

import asyncio

import pytest

from broker.engine.groups.members import Members
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.heartbeat import ConsumerData, SubscriptionData
from remoting.wire.codes import LanguageCode, RequestCode
from remoting.wire.command import Command
from tests.support.logged import lines_of
from tests.support.manual_clock import ManualClock

JAVA_HEARTBEAT = Command(code=RequestCode.HEART_BEAT, language=LanguageCode.JAVA, version=479)


class FakeRequester:
    def __init__(self) -> None:
        self.sent: list[Command] = []

    def send_oneway(self, command: Command) -> None:
        self.sent.append(command)


class FakeConnection:
    def __init__(self, peer: str) -> None:
        self.peer = peer
        host, _, port = peer.partition(":")
        self.peer_host = (host, int(port))
        self.requester = FakeRequester()
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True

    def notified(self) -> list[str]:
        """The groups of the 40s that came since the last look."""
        sent, self.requester.sent = self.requester.sent, []
        assert {command.code for command in sent} <= {RequestCode.NOTIFY_CONSUMER_IDS_CHANGED}
        return [command.ext_fields["consumerGroup"] for command in sent]


class Events:
    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def joined(self, group, member) -> None:
        self.told.append(("joined", group, member.client_id))

    def left(self, group, member, *, was_lost) -> None:
        self.told.append(("lost" if was_lost else "left", group, member.client_id))

    def subscribed(self, group, member, topics) -> None:
        self.told.append(("subscribed", group, member.client_id, tuple(topics)))

    def take(self) -> list[tuple[object, ...]]:
        told, self.told = self.told, []
        return told


class House:
    """Members with two connections to play with."""

    def __init__(self) -> None:
        self.clock = ManualClock(1_000_000)
        self.steady_ms = 0
        self.events = Events()
        self.silent_groups: set[str] = set()
        self.complaints = ComplaintLog(clock=lambda: self.steady_ms / 1000)
        self.members = Members(
            self.clock,
            self.events,
            lambda group: group not in self.silent_groups,
            self.complaints,
            lambda: self.steady_ms,
        )
        self.a = FakeConnection("10.0.0.1:1")
        self.b = FakeConnection("10.0.0.2:2")

    def beat(self, connection, *wanted, group="billing", client_id=None, keeps=False, **fields) -> None:
        data = ConsumerData(group_name=group, subscription_data_set=list(wanted), **fields)
        name = client_id or f"{connection.peer}@1"
        self.members.register_consumer(JAVA_HEARTBEAT, connection, name, data, keeps_subscriptions=keeps)

    def table(self, group="billing") -> dict[str, str]:
        found = self.members.find(group)
        return {topic: data.sub_string for topic, data in found.subscriptions.items()} if found else {}


def wants(topic: str, text: str = "*", version: int = 1) -> SubscriptionData:
    return SubscriptionData(topic=topic, sub_string=text, sub_version=version)


@pytest.fixture
def house() -> House:
    return House()


async def settle() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_members_tell_all_once_when_one_joins(house) -> None:
    house.beat(house.a, wants("orders"))
    await settle()
    assert house.a.notified() == ["billing"]
    house.beat(house.b, wants("orders"))
    await settle()
    assert (house.a.notified(), house.b.notified()) == (["billing"], ["billing"])
    house.beat(house.a, wants("orders"))
    house.beat(house.b, wants("orders"))
    await settle()
    assert (house.a.notified(), house.b.notified()) == ([], [])
    assert sorted(house.members.client_ids("billing")) == ["10.0.0.1:1@1", "10.0.0.2:2@1"]


async def test_members_tell_the_others_when_one_says_goodbye_and_when_one_is_lost(house) -> None:
    for connection in (house.a, house.b):
        house.beat(connection, wants("orders"))
    await settle()
    house.a.notified(), house.b.notified(), house.events.take()
    house.members.unregister_consumer(house.a, "billing")
    await settle()
    assert (house.a.notified(), house.b.notified()) == ([], ["billing"])
    assert house.events.take() == [("left", "billing", "10.0.0.1:1@1")]
    house.members.connection_lost(house.b)
    await settle()
    assert house.events.take() == [("lost", "billing", "10.0.0.2:2@1")]
    assert house.members.find("billing") is None
    assert house.members.client_ids("billing") == []


@pytest.mark.parametrize("reason", ["broadcasting", "switched off"])
async def test_members_are_not_told_where_nobody_wants_to_hear_it(house, reason) -> None:
    model = "BROADCASTING" if reason == "broadcasting" else "CLUSTERING"
    if reason == "switched off":
        house.silent_groups.add("billing")
    house.beat(house.a, wants("orders"), message_model=model)
    house.beat(house.b, wants("orders"), message_model=model)
    await settle()
    assert (house.a.notified(), house.b.notified()) == ([], [])


async def test_a_lost_member_is_told_of_even_where_the_group_is_not_notified(house) -> None:
    house.silent_groups.add("billing")
    for connection in (house.a, house.b):
        house.beat(connection, wants("orders"))
    house.members.connection_lost(house.a)
    await settle()
    assert house.b.notified() == ["billing"]


async def test_what_each_member_asked_for_itself_is_kept_and_where_they_differ(house) -> None:
    house.beat(house.a, wants("orders", "A", version=5))
    house.clock.advance_ms(1000)
    house.beat(house.b, wants("orders", "B", version=6), message_model="BROADCASTING")
    house.clock.advance_ms(1000)
    house.beat(house.a, wants("orders", "A", version=5))
    group = house.members.find("billing")
    told = group.conflicts.snapshot()
    (mine,), (others,) = told[house.a], told[house.b]
    assert (mine.expression, mine.sub_version, mine.others) == (("TAG", "A"), 5, ["10.0.0.2:2@1"])
    assert mine.last_seen_ms - mine.since_ms == 1000
    assert (others.expression, others.last_seen_ms - others.since_ms) == (("TAG", "B"), 0)
    assert [member.message_model for member in group.members.values()] == ["CLUSTERING", "BROADCASTING"]
    house.members.connection_lost(house.b)
    assert [each.is_over for each in group.conflicts.snapshot()[house.a]] == [True]
    assert house.b not in group.conflicts.snapshot()


async def test_a_heartbeat_without_subscriptions_keeps_those_of_the_connection_before(house) -> None:
    house.beat(house.a, wants("orders", "A"), client_id="me@1")
    house.beat(house.b, client_id="me@1", keeps=True)
    house.members.connection_lost(house.a)
    group = house.members.find("billing")
    assert [data.sub_string for data in group.members[house.b].subscriptions] == ["A"]
    assert house.table() == {"orders": "A"}
    assert group.conflicts.snapshot() == {house.b: []}


async def test_members_share_one_table_in_which_the_newer_expression_wins_silently(house) -> None:
    house.beat(house.a, wants("orders", "A", version=5))
    await settle()
    house.a.notified(), house.events.take()
    house.beat(house.b, wants("orders", "B", version=4))
    assert house.table() == {"orders": "A"}
    house.beat(house.b, wants("orders", "B", version=6))
    await settle()
    assert house.table() == {"orders": "B"}
    assert house.a.notified() == ["billing"], "for the joining, not for the expression"
    own = {m.client_id: m.subscriptions[0].sub_string for m in house.members.find("billing").members.values()}
    assert own == {"10.0.0.1:1@1": "A", "10.0.0.2:2@1": "B"}


async def test_members_with_different_topics_delete_each_others(house) -> None:
    house.beat(house.a, wants("orders"))
    house.beat(house.b, wants("refunds"))
    assert house.table() == {"refunds": "*"}
    await settle()
    house.a.notified(), house.b.notified(), house.events.take()
    house.beat(house.a, wants("orders"))
    await settle()
    assert house.table() == {"orders": "*"}
    assert (house.a.notified(), house.b.notified()) == (["billing"], ["billing"])
    assert house.events.take() == [("subscribed", "billing", "10.0.0.1:1@1", ("orders", "refunds"))]


async def test_a_member_that_changes_only_its_own_mind_is_told_of_without_a_rebalance(house) -> None:
    house.beat(house.a, wants("orders", "A", version=9))
    await settle()
    house.a.notified(), house.events.take()
    house.beat(house.a, wants("orders", "B", version=9))
    await settle()
    assert house.events.take() == [("subscribed", "billing", "10.0.0.1:1@1", ())]
    assert house.a.notified() == []


async def test_a_heartbeat_without_subscriptions_keeps_those_known(house) -> None:
    house.beat(house.a, wants("orders"))
    house.beat(house.a, keeps=True)
    assert house.table() == {"orders": "*"}


async def test_a_client_that_reconnects_neither_joined_nor_was_lost(house) -> None:
    house.beat(house.a, wants("orders"), client_id="one")
    await settle()
    house.a.notified(), house.events.take()
    house.beat(house.b, wants("orders"), client_id="one")
    house.members.connection_lost(house.a)
    await settle()
    assert house.events.take() == []
    assert (house.b.notified(), house.members.client_ids("billing")) == (["billing"], ["one"])
    house.members.connection_lost(house.b)
    assert house.events.take() == [("lost", "billing", "one")]
    await settle()


async def test_members_silent_for_too_long_lose_their_connection(house) -> None:
    house.beat(house.a, wants("orders"))
    house.steady_ms += 100_000
    house.beat(house.b, wants("orders"))
    house.members.register_producer(JAVA_HEARTBEAT, house.b, "p", "sellers")
    house.steady_ms += 20_001
    house.members.close_silent(120)
    assert (house.a.is_closed, house.b.is_closed) == (True, False)
    await settle()


async def test_clients_that_take_a_connection_from_each_other_are_logged_once_a_minute(house, caplog) -> None:
    for _ in range(50):
        house.beat(house.a, client_id="one")
        house.beat(house.a, client_id="two", group="refunds")
        house.beat(house.a, client_id="two")
        house.beat(house.a, client_id="one", group="refunds")
    assert lines_of(caplog, "remoting") == ["group billing: 10.0.0.1:1 was one and is now two"]
    house.steady_ms += 60_000
    house.complaints.report_left_out()
    assert lines_of(caplog, "remoting")[1:] == ["10.0.0.1, another client id: 197 more in 60 s were not logged"]
    await settle()


async def test_the_silent_clients_of_a_host_are_logged_once_a_minute(house, caplog) -> None:
    for number in range(30):
        house.beat(house.a, group=f"group-{number}")
    house.beat(house.b)
    house.steady_ms += 120_001
    house.members.close_silent(120)
    assert lines_of(caplog, "remoting") == [
        "10.0.0.1:1@1 (10.0.0.1:1) sent no heartbeat for 120 s",
        "10.0.0.2:2@1 (10.0.0.2:2) sent no heartbeat for 120 s",
    ]
    house.steady_ms += 60_000
    house.complaints.report_left_out()
    assert lines_of(caplog, "remoting")[2:] == ["10.0.0.1, no heartbeat: 29 more in 60 s were not logged"]
    await settle()


@pytest.mark.parametrize("jump_ms", [-86_400_000, 86_400_000])
async def test_members_are_not_silent_because_somebody_set_the_clock(house, jump_ms) -> None:
    house.beat(house.a, wants("orders"))
    house.steady_ms += 100_000
    house.beat(house.b, wants("orders"))
    house.clock.advance_ms(jump_ms)
    house.steady_ms += 20_001
    house.members.close_silent(120)
    assert (house.a.is_closed, house.b.is_closed) == (True, False)


async def test_producers_come_and_go(house) -> None:
    house.members.register_producer(JAVA_HEARTBEAT, house.a, "p1", "sellers")
    house.members.register_producer(JAVA_HEARTBEAT, house.b, "p2", "sellers")
    assert [client.client_id for client in house.members.producers("sellers")] == ["p1", "p2"]
    house.members.unregister_producer(house.a, "sellers")
    house.members.connection_lost(house.b)
    assert house.members.producers("sellers") == []
    assert house.members.producer_groups() == []


async def test_heartbeat_v2_knows_a_changed_fingerprint(house) -> None:
    house.beat(house.a, wants("orders"))
    assert house.members.is_sub_change(["billing"], 7) is False, "nothing to compare with"
    assert house.members.is_sub_change(["billing"], 7) is False
    assert house.members.is_sub_change(["billing"], 8) is True
    assert house.members.is_sub_change(["nobody"], 8) is False
    await settle()


async def test_a_connection_that_changes_its_client_id_is_a_new_member(house) -> None:
    house.beat(house.a, wants("orders"), client_id="one")
    house.events.take()
    house.beat(house.a, wants("orders"), client_id="two")
    assert ("joined", "billing", "two") in house.events.take()
    assert house.members.client_ids("billing") == ["two"]
    assert house.members.client_id_of(house.a, "billing") == "two"
    assert house.members.client_id_of(house.b, "billing") is None
    await settle()


async def test_a_producer_is_found_by_its_client_id_while_one_group_has_it(house) -> None:
    house.members.register_producer(JAVA_HEARTBEAT, house.a, "p1", "sellers")
    house.members.register_producer(JAVA_HEARTBEAT, house.a, "p1", "buyers")
    house.members.unregister_producer(house.a, "sellers")
    assert house.members.producer_connection("p1") is house.a
    house.members.register_producer(JAVA_HEARTBEAT, house.b, "p1", "buyers")
    assert house.members.producer_connection("p1") is house.b, "the newer connection"
    house.members.connection_lost(house.b)
    assert house.members.producer_connection("p1") is house.a
    house.members.connection_lost(house.a)
    assert house.members.producer_connection("p1") is None
