"""A whole broker in this process, asked over real sockets by the admin client."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.config_files import ConfigFileUnreadable
from broker.engine.groups import member_calls
from broker.engine.runtime import BrokerRuntime
from broker.engine.schedule.driver import Driver
from broker.engine.store.errors import StoreError
from broker.engine.wiring import scheduling
from remoting.client.admin import Admin
from remoting.client.connections import Connections
from remoting.client.errors import BrokerRefused, ClientError
from remoting.client.producer import Producer
from remoting.server import ListenError
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.heartbeat import ConsumerData, HeartbeatData, SubscriptionData
from remoting.wire.bodies.watch import (
    ASSIGNMENT_CHANGED,
    GROUP_CHANGED,
    MEMBER_JOINED,
    MEMBER_LOST,
    PROGRESS,
    SUBSCRIPTION_CHANGED,
    TOPIC_CHANGED,
)
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.frames import encode_frame
from remoting.wire.headers.pull import SUSPEND_FLAG
from remoting.wire.names import TIMER_TOPIC
from remoting.wire.stored_message import decode_messages
from tests.support.waiting import eventually

TIMEOUT_MS = 60_000


class House:
    """A running broker and one client of it."""

    def __init__(self, runtime: BrokerRuntime) -> None:
        self.runtime = runtime
        self.connections = Connections()
        self.admin = Admin(self.connections, TIMEOUT_MS)
        self.broker = runtime.config.address
        self.namesrv = f"127.0.0.1:{runtime.config.namesrv_port}"

    async def ask(self, code: int, body: bytes = b"", **fields: object) -> Command:
        command = Command(code=code, ext_fields={name: str(value) for name, value in fields.items()}, body=body)
        return await self.connections.request(self.broker, command, TIMEOUT_MS)

    async def beat(self, group: str = "billing", *topics: str, client_id: str = "me@1") -> Command:
        wanted = [SubscriptionData(topic=topic, sub_version=1) for topic in topics]
        consumer = ConsumerData(group_name=group, subscription_data_set=wanted)
        heartbeat = HeartbeatData(client_id=client_id, consumer_data_set=[consumer])
        return await self.ask(RequestCode.HEART_BEAT, write_body(heartbeat))

    async def send(self, topic: str, *bodies: bytes) -> None:
        producer = Producer(self.namesrv, "sellers", timeout_ms=TIMEOUT_MS)
        await producer.start()
        try:
            for body in bodies:
                await producer.send(topic, body)
        finally:
            await producer.close()

    async def pull(
        self, topic: str, queue_id: int, queue_offset: int = 0, wait_ms: int = 0, **fields: object
    ) -> Command:
        values = {
            "consumerGroup": "billing",
            "topic": topic,
            "queueId": queue_id,
            "queueOffset": queue_offset,
            "maxMsgNums": 32,
            "sysFlag": SUSPEND_FLAG if wait_ms else 0,
            "commitOffset": 0,
            "suspendTimeoutMillis": wait_ms,
            "subVersion": 0,
        }
        return await self.ask(RequestCode.PULL_MESSAGE, **(values | fields))


def config_in(folder, **fields) -> BrokerConfig:
    return BrokerConfig(**{"store": folder / "store", "port": 0, "namesrv_port": 0, "flush": "async", **fields})


@pytest.fixture
async def house(tmp_path):
    runtime = BrokerRuntime(config_in(tmp_path))
    await runtime.start()
    house = House(runtime)
    try:
        yield house
    finally:
        await house.connections.close()
        await runtime.stop()


async def test_a_message_goes_in_and_comes_out_and_is_counted(house) -> None:
    await house.send("orders", *[b"%d" % number for number in range(8)])
    route = await house.admin.cluster.route(house.namesrv, "orders")
    assert [(data.read_queue_nums, data.perm) for data in route.queue_datas] == [(4, 6)]
    assert route.broker_datas[0].master_addr == house.broker
    stats = await house.admin.topics.stats(house.broker, "orders")
    assert sum(edge.max_offset - edge.min_offset for edge in stats.values()) == 8
    await house.beat("billing", "orders")
    answer = await house.pull("orders", 0)
    assert answer.code == ResponseCode.SUCCESS
    assert int(answer.ext_fields["nextBeginOffset"]) == stats[next(q for q in stats if q.queue_id == 0)].max_offset


async def test_a_broker_takes_up_where_it_stopped(tmp_path) -> None:
    config = config_in(tmp_path)
    runtime = BrokerRuntime(config)
    await runtime.start()
    house = House(runtime)
    await house.send("orders", *[b"%d" % number for number in range(8)])
    await house.beat("billing", "orders")
    await house.admin.offsets.commit(house.broker, "billing", "orders", 0, 1)
    await house.connections.close()
    await runtime.stop()
    again = BrokerRuntime(config)
    await again.start()
    house = House(again)
    try:
        assert await house.admin.offsets.committed(house.broker, "billing", "orders", 0) == 1
        stats = await house.admin.topics.stats(house.broker, "orders")
        assert sum(edge.max_offset for edge in stats.values()) == 8
    finally:
        await house.connections.close()
        await again.stop()


async def test_unknown_codes_and_broken_headers_are_answered_and_the_connection_lives(house, caplog) -> None:
    unknown = await house.ask(4711)
    assert (unknown.code, unknown.remark) == (
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        " request type 4711 not supported",
    )
    broken = await house.ask(RequestCode.PULL_MESSAGE, queueId="many")
    assert broken.code == ResponseCode.SYSTEM_ERROR
    assert "PullMessageHeader" in broken.remark
    garbage = await house.ask(RequestCode.HEART_BEAT, b"{torn")
    assert garbage.code == ResponseCode.SYSTEM_ERROR
    assert (await house.beat("billing", "orders")).code == ResponseCode.SUCCESS
    assert (await house.ask(4711)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert caplog.text.count("unknown request code 4711") == 1


async def test_the_name_server_does_not_answer_for_the_broker(house) -> None:
    with pytest.raises(BrokerRefused, match="not supported"):
        await house.admin.topics.stats(house.namesrv, "TBW102")
    info = await house.admin.cluster.info(house.namesrv)
    assert info.cluster_addr_table == {"local": ["broker-a"]}


async def test_a_new_group_reads_a_young_queue_from_its_start(house) -> None:
    await house.send("orders", b"one")
    await house.beat("billing", "orders")
    stats = await house.admin.topics.stats(house.broker, "orders")
    full = next(queue.queue_id for queue, edge in stats.items() if edge.max_offset)
    empty = next(queue.queue_id for queue, edge in stats.items() if not edge.max_offset)
    assert await house.admin.offsets.committed(house.broker, "billing", "orders", full) == 0
    assert await house.admin.offsets.committed(house.broker, "billing", "orders", empty) is None


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"consumerGroup": "nobody"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
        ({"topic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queueId": None}, ResponseCode.INVALID_PARAMETER),
        ({"commitOffset": -1}, ResponseCode.INVALID_PARAMETER),
    ],
    ids=["unknown group", "unknown topic", "no queue", "negative offset"],
)
async def test_a_commit_that_makes_no_sense_is_refused(house, fields, code) -> None:
    await house.beat("billing", "SELF_TEST_TOPIC")
    values = {"consumerGroup": "billing", "topic": "SELF_TEST_TOPIC", "queueId": 0, "commitOffset": 1} | fields
    answer = await house.ask(
        RequestCode.UPDATE_CONSUMER_OFFSET, **{name: value for name, value in values.items() if value is not None}
    )
    assert answer.code == code


async def test_members_and_progress_can_be_asked_for(house) -> None:
    await house.send("orders", b"one")
    assert await house.admin.clients.consumers(house.broker, "billing") is None
    await house.beat("billing", "orders")
    connection = await house.admin.clients.consumers(house.broker, "billing")
    assert [client.client_id for client in connection.connection_set] == ["me@1"]
    assert set(connection.subscription_table) == {"orders"}
    assert await house.admin.clients.consumer_ids(house.broker, "billing") == ["me@1"]
    await house.admin.offsets.commit(house.broker, "billing", "orders", 0, 0)
    stats = await house.admin.offsets.consume_stats(house.broker, "billing")
    assert sum(queue.broker_offset - queue.consumer_offset for queue in stats.queues.values()) == 1


async def test_a_member_that_closes_while_its_heartbeat_is_handled_is_gone_at_once(house) -> None:
    header, _ = await house.admin.our_broker.watch(house.broker)
    host, port = house.broker.split(":")
    for number in range(50):
        data = HeartbeatData(client_id=f"me@{number}", consumer_data_set=[ConsumerData(group_name="billing")])
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(encode_frame(Command(code=RequestCode.HEART_BEAT, body=write_body(data))))
        writer.close()
        await writer.wait_closed()
    kinds: Counter[str] = Counter()

    async def all_lost() -> bool:
        nonlocal header
        header, body = await house.admin.our_broker.watch(
            house.broker, boot=header.boot, since=header.revision, wait_ms=200
        )
        kinds.update(event.kind for event in body.events)
        return kinds[MEMBER_LOST] == 50

    await eventually(all_lost)
    assert kinds[MEMBER_JOINED] == 50
    assert await house.admin.clients.consumers(house.broker, "billing") is None


@pytest.mark.slow
async def test_a_watcher_hears_what_happens_in_order(house) -> None:
    header, body = await house.admin.our_broker.watch(house.broker)
    assert header.is_snapshot
    assert "TBW102" in {topic.topic_name for topic in body.topics}
    await house.send("orders", b"one")
    other = House(house.runtime)
    await other.beat("billing", "orders", client_id="you@2")
    await other.pull("orders", 0)
    await other.connections.close()
    kinds: list[str] = []

    async def hear() -> bool:
        nonlocal header
        header, body = await house.admin.our_broker.watch(
            house.broker, boot=header.boot, since=header.revision, wait_ms=200
        )
        assert not header.is_snapshot
        kinds.extend(event.kind for event in body.events)
        return MEMBER_LOST in kinds and PROGRESS in kinds

    await eventually(hear)
    told = [kind for kind in kinds if kind not in (PROGRESS, TOPIC_CHANGED, GROUP_CHANGED)]
    assert [kind for kind in told if not kind.startswith("scheduler")] == [
        MEMBER_JOINED,
        SUBSCRIPTION_CHANGED,
        ASSIGNMENT_CHANGED,
        MEMBER_LOST,
    ]
    assert kinds.index(TOPIC_CHANGED) < kinds.index(MEMBER_JOINED)


async def test_a_watcher_is_told_who_of_a_group_asks_for_something_else(house) -> None:
    other = House(house.runtime)
    await house.beat("billing", "orders", "refunds")
    header, _ = await house.admin.our_broker.watch(house.broker)
    await other.beat("billing", "orders", client_id="you@2")
    _, body = await house.admin.our_broker.watch(house.broker, boot=header.boot, since=header.revision, wait_ms=2000)
    (group,) = body.groups
    told = {
        member.client_id: [(each.topic, each.expression, each.others, each.is_over) for each in member.differences]
        for member in group.members
    }
    assert told == {"me@1": [("refunds", "*", ["you@2"], False)], "you@2": [("refunds", None, ["me@1"], False)]}
    assert all(each.since_ms <= each.last_seen_ms for member in group.members for each in member.differences)
    await other.connections.close()
    await eventually(lambda: _is_over(house))


async def _is_over(house: House) -> bool:
    _, body = await house.admin.our_broker.watch(house.broker)
    (group,) = [group for group in body.groups if group.config.group_name == "billing"]
    return [[each.is_over for each in member.differences] for member in group.members] == [[True]]


async def test_a_watcher_of_another_life_gets_everything_anew(house) -> None:
    header, _ = await house.admin.our_broker.watch(house.broker, boot="of another life", since=7, wait_ms=1000)
    assert header.is_snapshot


async def test_a_parked_watcher_is_answered_when_its_time_is_over(house) -> None:
    header, _ = await house.admin.our_broker.watch(house.broker)
    answer, body = await house.admin.our_broker.watch(house.broker, boot=header.boot, since=header.revision, wait_ms=50)
    assert body.events == [] or answer.revision > header.revision


async def test_running_info_is_passed_on_and_an_absent_member_named(house) -> None:
    with pytest.raises(BrokerRefused, match="not online"):
        await house.admin.clients.running_info(house.broker, "billing", "nobody@0")


async def test_running_info_comes_back_as_the_member_gave_it(house) -> None:
    member = House(house.runtime)
    member.connections.on_request[RequestCode.GET_CONSUMER_RUNNING_INFO] = lambda _, request: response(
        request, 77, "in my words", {"seen": request.ext_fields["jstackEnable"]}, b"and body"
    )
    await member.beat("billing", "orders", client_id="you@2")
    fields = {"consumerGroup": "billing", "clientId": "you@2", "jstackEnable": "true"}
    answer = await house.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, **fields)
    assert (answer.code, answer.remark, bytes(answer.body)) == (77, "in my words", b"and body")
    assert answer.ext_fields["seen"] == "true"
    await member.connections.close()


async def test_a_member_that_does_not_answer_is_named(house, monkeypatch) -> None:
    member = House(house.runtime)
    asked = asyncio.Event()
    member.connections.on_request[RequestCode.GET_CONSUMER_RUNNING_INFO] = lambda *_: asked.set()
    await member.beat("billing", "orders", client_id="you@2")
    fields = {"consumerGroup": "billing", "clientId": "you@2"}
    monkeypatch.setattr(member_calls, "CALL_TIMEOUT_MS", 50)
    late = await house.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, **fields)
    assert (late.code, "you@2" in late.remark) == (ResponseCode.CONSUME_MSG_TIMEOUT, True)
    monkeypatch.setattr(member_calls, "CALL_TIMEOUT_MS", TIMEOUT_MS)
    await asked.wait()  # that question arrives all the same, and perhaps late
    asked.clear()
    asking = asyncio.create_task(house.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, **fields))
    await asked.wait()
    await member.connections.close()
    assert (await asking).code == ResponseCode.SYSTEM_ERROR


async def test_a_failed_save_does_not_keep_the_store_from_closing(tmp_path) -> None:
    config = config_in(tmp_path)
    runtime = BrokerRuntime(config)
    await runtime.start()
    house = House(runtime)
    await house.beat("billing", "SELF_TEST_TOPIC")
    await house.admin.offsets.commit(house.broker, "billing", "SELF_TEST_TOPIC", 0, 1)
    await house.connections.close()
    blocked = config.store / "config" / "consumerOffset.json.tmp"
    blocked.mkdir()
    with pytest.raises(OSError, match="directory"):
        await runtime.stop()
    blocked.rmdir()
    again = BrokerRuntime(config)
    await again.start()
    await again.stop()


async def test_facts_that_cannot_be_read_stop_the_start_and_stay_as_they_are(tmp_path) -> None:
    config = config_in(tmp_path)
    facts = config.store / "config"
    facts.mkdir(parents=True)
    for name in ("topics.json", "topics.json.bak"):
        (facts / name).write_bytes(b"{torn")
    runtime = BrokerRuntime(config)
    try:
        with pytest.raises(ConfigFileUnreadable, match="move both away"):
            await runtime.start()
    finally:
        await runtime.stop()
    assert sorted(path.name for path in facts.iterdir()) == ["topics.json", "topics.json.bak"]
    assert (facts / "topics.json").read_bytes() == b"{torn"


async def test_a_second_broker_on_the_same_store_is_refused(house, tmp_path) -> None:
    second = BrokerRuntime(config_in(tmp_path))
    try:
        with pytest.raises(StoreError):
            await second.start()
    finally:
        await second.stop()


async def test_a_taken_port_is_refused_before_the_store_is_touched(house, tmp_path) -> None:
    second = BrokerRuntime(config_in(tmp_path / "other", port=house.runtime.config.port))
    try:
        with pytest.raises(ListenError, match="is taken by another process"):
            await second.start()
    finally:
        await second.stop()
    assert not (tmp_path / "other").exists()


async def test_stopping_closes_what_is_held(house) -> None:
    await house.beat("billing", "SELF_TEST_TOPIC")
    waiting = asyncio.ensure_future(house.pull("SELF_TEST_TOPIC", 0, wait_ms=20_000))
    await eventually(lambda: len(house.runtime.broker.held_pulls) == 1)
    await house.runtime.stop()
    with pytest.raises(ClientError, match=house.broker):
        await waiting


TOPIC = {
    "topic": "orders",
    "defaultTopic": "TBW102",
    "readQueueNums": 1,
    "writeQueueNums": 1,
    "perm": 6,
    "topicFilterType": "SINGLE_TAG",
    "order": "false",
}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda house: house.ask(RequestCode.DELETE_TOPIC_IN_BROKER, topic="orders"), ResponseCode.TOPIC_NOT_EXIST),
        (
            lambda house: house.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, **TOPIC | {"perm": 2}),
            ResponseCode.NO_PERMISSION,
        ),
        (
            lambda house: house.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, **TOPIC | {"readQueueNums": 0}),
            ResponseCode.INVALID_PARAMETER,
        ),
        (
            lambda house: house.ask(
                RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, b'{"groupName":"billing","consumeEnable":false}'
            ),
            ResponseCode.NO_PERMISSION,
        ),
        (
            lambda house: house.ask(
                RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, topic="orders", group="billing", timestamp=0, isForce="true"
            ),
            ResponseCode.PULL_OFFSET_MOVED,
        ),
    ],
    ids=["topic deleted", "topic not to be read", "queue taken away", "group switched off", "progress reset"],
)
async def test_a_pull_that_waits_hears_at_once_what_a_tool_changed(house, change, code) -> None:
    assert (await house.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, **TOPIC)).code == ResponseCode.SUCCESS
    await house.beat("billing", "orders")
    waiting = asyncio.ensure_future(house.pull("orders", 0, wait_ms=20_000))
    await eventually(lambda: len(house.runtime.broker.held_pulls) == 1)
    assert (await change(house)).code == ResponseCode.SUCCESS
    assert (await waiting).code == code


async def test_the_internal_scheduler_goes_on_after_a_failure(tmp_path, monkeypatch, caplog) -> None:
    fails = [ValueError("a mistake of ours")]
    turn = Driver.turn

    async def failing_once(self: Driver, wait_ms: int) -> int:
        if fails:
            raise fails.pop()
        return await turn(self, wait_ms)

    monkeypatch.setattr(Driver, "turn", failing_once)
    monkeypatch.setattr(scheduling, "REFUSED_PAUSE_MS", 1)
    runtime = BrokerRuntime(config_in(tmp_path))
    await runtime.start()
    try:
        await eventually(lambda: runtime.broker.scheduling.scheduler.state.driver == "internal")
    finally:
        await runtime.stop()
    assert "a mistake of ours" in caplog.text


async def test_a_group_gets_what_is_stored_after_a_power_cut_took_what_it_had_consumed(tmp_path) -> None:
    """The lost message's offset is given again, and the group must not be beyond it."""
    config_dir = tmp_path / "store" / "config"
    config_dir.mkdir(parents=True)
    (config_dir / "consumerOffset.json").write_text('{"offsetTable":{"orders@billing":{0:1}}}')
    runtime = BrokerRuntime(config_in(tmp_path))
    await runtime.start()
    house = House(runtime)
    try:
        found = await house.ask(RequestCode.QUERY_CONSUMER_OFFSET, consumerGroup="billing", topic="orders", queueId=0)
        assert found.ext_fields["offset"] == "0"
    finally:
        await house.connections.close()
        await runtime.stop()


@pytest.mark.slow
async def test_levels_that_are_changed_while_messages_wait_count_for_the_next_ones(tmp_path) -> None:
    runtime = BrokerRuntime(config_in(tmp_path))
    await runtime.start()
    house = House(runtime)
    try:
        producer = Producer(house.namesrv, "sellers")
        await producer.start()
        await producer.send("orders", b"old", delay_level=18)
        answer = await house.ask(RequestCode.UPDATE_BROKER_CONFIG, b"messageDelayLevel=1s 1s\nmaxMessageSize=10\n")
        assert answer.code == ResponseCode.SUCCESS
        began_s = asyncio.get_running_loop().time()
        await producer.send("orders", b"new", delay_level=18)
        with pytest.raises(ClientError, match="10 are allowed"):
            await producer.send("orders", b"x" * 11)

        async def came() -> int:
            stats = await house.admin.topics.stats(house.broker, "orders")
            return sum(edge.max_offset for edge in stats.values())

        await eventually(lambda: came())
        assert asyncio.get_running_loop().time() - began_s >= 1
        assert await came() == 1, "what waited for two hours still does"
        await producer.close()
    finally:
        await house.connections.close()
        await runtime.stop()
    again = BrokerRuntime(config_in(tmp_path))
    await again.start()
    try:
        assert again.config.delay_levels == "1s 1s"
        assert again.config.body_bytes_max == 10
    finally:
        await again.stop()


@pytest.mark.slow
async def test_a_message_comes_at_the_time_its_sender_named_unless_it_was_recalled(house) -> None:
    too_late = (ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid")

    async def recall(topic: str, handle: str) -> Command:
        return await house.ask(RequestCode.RECALL_MESSAGE, topic=topic, recallHandle=handle)

    # Again where the time of a message came before its recall.
    for topic in (f"orders-{number}" for number in itertools.count()):
        handles, sent_s = [], time.time()
        for number in range(2):
            properties = f"UNIQ_KEY\x01K{number}\x02TIMER_DELAY_MS\x011600\x02"
            fields = dict(zip("abcdefgh", ("p", topic, "TBW102", "1", "0", "0", "0", "0"), strict=True))
            answer = await house.ask(RequestCode.SEND_MESSAGE_V2, b"%d" % number, **fields, i=properties)
            handles.append(answer.ext_fields["recallHandle"])
        answer = await recall(topic, handles[0])
        if time.time() - sent_s < 1.6 or (answer.code, answer.remark) != too_late:
            break
    assert (answer.code, answer.ext_fields["msgId"]) == (ResponseCode.SUCCESS, "K0")

    async def came() -> int:
        return int((await house.ask(RequestCode.GET_MAX_OFFSET, topic=topic, queueId=0)).ext_fields["offset"])

    await eventually(lambda: came())
    await house.beat("billing", topic)
    pulled = await house.pull(topic, 0)
    (message,) = decode_messages(pulled.body)
    assert message.body == b"1"
    late = await recall(topic, handles[1])
    assert (late.code, late.remark) == too_late


async def test_a_producers_delay_in_seconds_and_its_moment_of_delivery_make_timer_messages(house) -> None:
    async def stored(topic: str) -> int:
        stats = await house.admin.topics.stats(house.broker, topic)
        return sum(edge.max_offset for edge in stats.values())

    producer = Producer(house.namesrv, "sellers")
    await producer.start()
    await producer.send("orders", b"later", delay_s=3600)
    assert await stored(TIMER_TOPIC) == 1
    await producer.send("orders", b"tomorrow", deliver_at=datetime.now(UTC) + timedelta(days=1))
    assert await stored(TIMER_TOPIC) == 2
    await producer.send("orders", b"its time was yesterday", deliver_at=datetime.now(UTC) - timedelta(days=1))
    assert await stored("orders") == 1
    with pytest.raises(BrokerRefused, match="max delay"):
        await producer.send("orders", b"too far", delay_s=86_400 * 365)
    await producer.close()
