"""Our producer, routes, heartbeats and admin calls against a real Apache RocketMQ 5.4.0."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from remoting.client.admin import Admin
from remoting.client.config import ClientConfig
from remoting.client.connections import Connections
from remoting.client.errors import BrokerRefused, RouteNotFound, SendFailed
from remoting.client.instance import ClientInstance
from remoting.client.name_servers import NameServers
from remoting.client.outgoing import Message
from remoting.client.producer import Producer
from remoting.client.send_result import SendResult, SendStatus
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.heartbeat import ConsumerData, SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import ConsumerRunningInfo, ProcessQueueInfo, write_running_info
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.pull import PullMessageHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.message_id import decode_offset_message_id
from remoting.wire.stored_message import StoredMessage, decode_messages
from tests.support.apache import BROKER_NAME, CLUSTER, ApacheRocketMQ
from tests.support.java import require_apache
from tests.support.patience import ANSWER_WITHIN_S, routed
from tests.support.waiting import eventually

pytestmark = [pytest.mark.java, pytest.mark.journey]

ANSWER_WITHIN_MS = int(ANSWER_WITHIN_S * 1000)
PATIENT = ClientConfig(unregister_timeout_ms=ANSWER_WITHIN_MS)


@pytest.fixture(autouse=True)
def _patient_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    for request in (Connections.request, NameServers.request):
        monkeypatch.setattr(request, "__defaults__", (ANSWER_WITHIN_MS,))


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheRocketMQ]:
    require_apache()
    # Small pages show that the whole tables are read all the same.
    with ApacheRocketMQ(tmp_path_factory.mktemp("apache"), settings={"splitMetadataSize": "3"}) as cluster:
        yield cluster


@pytest_asyncio.fixture
async def instance(apache: ApacheRocketMQ) -> AsyncIterator[ClientInstance]:
    instance = ClientInstance(apache.namesrv, config=PATIENT)
    instance.start()
    yield instance
    await instance.close()


@pytest_asyncio.fixture
async def producer(apache: ApacheRocketMQ, instance: ClientInstance) -> AsyncIterator[Producer]:
    producer = Producer(apache.namesrv, "senders", instance=instance, timeout_ms=60_000)
    await producer.start()
    yield producer
    await producer.close()


@pytest.fixture
def admin(instance: ClientInstance) -> Admin:
    return Admin(instance.connections, timeout_ms=ANSWER_WITHIN_MS)


async def stored(instance: ClientInstance, address: str, result: SendResult) -> StoredMessage:
    """The message as the broker holds it, by its commit-log offset."""
    _, commit_log_offset = decode_offset_message_id(result.offset_message_id)
    request = Command(code=RequestCode.VIEW_MESSAGE_BY_ID, ext_fields={"offset": str(commit_log_offset)})
    answer = await instance.connections.request(address, request)
    assert answer.code == ResponseCode.SUCCESS, answer
    (message,) = decode_messages(bytes(answer.body))
    return message


async def reached(apache: ApacheRocketMQ, admin: Admin, queue: MessageQueue, max_offset: int) -> None:
    """Returns when the queue has so many messages: the broker puts them there after its answer."""

    async def is_there() -> bool:
        return await admin.offsets.max(apache.broker, queue.topic, queue.queue_id) == max_offset

    await eventually(is_there)


async def test_send_stores_body_tags_keys_and_properties_in_a_topic_made_on_first_use(
    apache: ApacheRocketMQ, instance: ClientInstance, producer: Producer
) -> None:
    result = await producer.send("made-by-send", b"hello", tags="a", keys=["k1", "k2"], properties={"who": "é"}, flag=7)
    assert result.status is SendStatus.SEND_OK
    assert result.queue.broker_name == BROKER_NAME
    message = await stored(instance, apache.broker, result)
    assert (message.topic, message.body, message.flag) == ("made-by-send", b"hello", 7)
    assert (message.tags, message.keys, message.properties["who"]) == ("a", ["k1", "k2"], "é")
    assert message.unique_key == result.message_id
    assert message.queue_offset == result.queue_offset
    route = await eventually(lambda: routed(instance, "made-by-send"))
    assert route.queue_datas[0].write_queue_nums == 4


async def test_a_long_body_travels_compressed(
    apache: ApacheRocketMQ, instance: ClientInstance, producer: Producer
) -> None:
    result = await producer.send("compressed", b"x" * 100_000)
    message = await stored(instance, apache.broker, result)
    assert message.sys_flag & 0x701 == 0x301
    assert len(message.body) < 1000


async def test_sends_go_round_the_queues(producer: Producer) -> None:
    await producer.send("round", b"first")
    results = await asyncio.gather(*(producer.send("round", b"x") for _ in range(8)))
    assert sorted(result.queue.queue_id for result in results) == [0, 0, 1, 1, 2, 2, 3, 3]


async def test_a_chosen_queue_is_kept_and_a_queue_that_is_not_there_is_refused(producer: Producer) -> None:
    await producer.send("chosen", b"x")
    queue = MessageQueue("chosen", BROKER_NAME, 2)
    results = [await producer.send("chosen", b"x", queue=queue) for _ in range(3)]
    assert {result.queue for result in results} == {queue}
    by_selector = await producer.send("chosen", b"x", selector=lambda queues: queues[2])
    assert by_selector.queue == queue
    with pytest.raises(BrokerRefused) as refused:
        await producer.send("chosen", b"x", queue=queue._replace(queue_id=400))
    assert refused.value.code == ResponseCode.INVALID_PARAMETER


async def test_a_batch_becomes_single_messages_one_after_the_other(
    apache: ApacheRocketMQ, instance: ClientInstance, producer: Producer
) -> None:
    await producer.send("batched", b"x")
    messages = [Message(b"body %d" % number, tags=f"t{number}", keys="k") for number in range(5)]
    results = await producer.send_batch("batched", messages)
    first = results[0]
    assert [result.queue_offset for result in results] == [first.queue_offset + index for index in range(5)]
    for number, result in enumerate(results):
        message = await stored(instance, apache.broker, result)
        assert (message.body, message.tags) == (b"body %d" % number, f"t{number}")
        assert message.unique_key == result.message_id


async def test_a_batch_over_4_mib_is_sent_in_parts(producer: Producer) -> None:
    await producer.send("parts", b"x")
    results = await producer.send_batch("parts", [Message(bytes([number]) * 1_500_000) for number in range(5)])
    assert len({result.offset_message_id for result in results}) == 5
    assert len({result.message_id for result in results}) == 5


async def test_a_oneway_message_arrives(apache: ApacheRocketMQ, producer: Producer, admin: Admin) -> None:
    result = await producer.send("oneway", b"x")
    await producer.send_oneway("oneway", b"y", queue=result.queue)
    await reached(apache, admin, result.queue, 2)


async def test_a_delayed_message_waits_in_the_schedule_topic(
    apache: ApacheRocketMQ, instance: ClientInstance, producer: Producer
) -> None:
    message = await stored(instance, apache.broker, await producer.send("later", b"x", delay_level=5))
    assert message.topic == "SCHEDULE_TOPIC_XXXX"
    assert message.properties["REAL_TOPIC"] == "later"
    assert message.properties["DELAY"] == "5"


async def test_a_topic_that_no_broker_lets_be_created_has_no_route(instance: ClientInstance) -> None:
    with pytest.raises(RouteNotFound, match=r"'nowhere'.*create the topic"):
        await instance.routes.get("nowhere")


async def test_a_topic_that_must_not_be_written_is_refused_after_all_attempts(
    apache: ApacheRocketMQ, producer: Producer, admin: Admin, instance: ClientInstance
) -> None:
    await admin.topics.create(apache.broker, TopicConfig(topic_name="readable", perm=4))
    await eventually(lambda: routed(instance, "readable"))
    with pytest.raises(SendFailed, match=r"no broker that has a master lets topic .* be written"):
        await producer.send("readable", b"x")


async def test_cluster_route_topics_and_groups_are_read(
    apache: ApacheRocketMQ, instance: ClientInstance, admin: Admin, producer: Producer
) -> None:
    await producer.send("known", b"x")
    await eventually(lambda: routed(instance, "known"))
    cluster = await admin.cluster.info(apache.namesrv)
    assert cluster.cluster_addr_table == {CLUSTER: [BROKER_NAME]}
    assert cluster.broker_addr_table[BROKER_NAME].master_addr == apache.broker
    assert (await admin.cluster.route(apache.namesrv, "known")).broker_datas[0].broker_addrs == {"0": apache.broker}
    topics = (await admin.topics.table(apache.broker)).topic_config_table
    assert len(topics) > 3
    assert topics["known"].write_queue_nums == 4
    group = SubscriptionGroupConfig(group_name="made", retry_max_times=3)
    await admin.groups.create(apache.broker, group)
    groups = (await admin.groups.table(apache.broker)).subscription_group_table
    assert len(groups) > 3
    assert groups["made"].retry_max_times == 3


async def test_a_topic_is_created_and_changed(apache: ApacheRocketMQ, admin: Admin) -> None:
    config = TopicConfig(topic_name="shaped", read_queue_nums=2, write_queue_nums=2)
    config.attributes = {"+message.type": "FIFO"}
    await admin.topics.create(apache.broker, config)
    made = (await admin.topics.table(apache.broker)).topic_config_table["shaped"]
    assert (made.read_queue_nums, made.perm, made.attributes) == (2, 6, {"message.type": "FIFO"})
    with pytest.raises(BrokerRefused, match="topic 'shaped!'"):
        await admin.topics.create(apache.broker, TopicConfig(topic_name="shaped!"))


async def test_offsets_of_queues_are_read(apache: ApacheRocketMQ, admin: Admin, producer: Producer) -> None:
    first = await producer.send("offsets", b"x")
    queue_id = first.queue.queue_id
    for _ in range(4):
        await producer.send("offsets", b"x", queue=first.queue)
    await reached(apache, admin, first.queue, 5)
    assert await admin.offsets.min(apache.broker, "offsets", queue_id) == 0
    assert await admin.offsets.search(apache.broker, "offsets", queue_id, 0) == 0
    assert await admin.offsets.search(apache.broker, "offsets", queue_id, 4_000_000_000_000) == 5
    stats = await admin.topics.stats(apache.broker, "offsets")
    assert stats[first.queue].max_offset == 5
    assert stats[first.queue].last_update_timestamp > 0
    with pytest.raises(BrokerRefused) as refused:
        await admin.topics.stats(apache.broker, "no-such-topic")
    assert refused.value.code == ResponseCode.TOPIC_NOT_EXIST


async def test_a_member_is_seen_with_its_progress_until_it_says_goodbye(
    apache: ApacheRocketMQ, instance: ClientInstance, admin: Admin, producer: Producer
) -> None:
    sent = await producer.send("watched", b"x", tags="a")
    await reached(apache, admin, sent.queue, 1)
    assert await admin.clients.consumers(apache.broker, "readers") is None
    assert await admin.clients.consumer_ids(apache.broker, "readers") == []

    subscription = SubscriptionData(topic="watched", sub_string="*", sub_version=1)
    entry = ConsumerData(group_name="readers", subscription_data_set=[subscription])
    instance.heartbeats.add_consumer("readers", lambda: entry)
    assert await instance.heartbeats.send_now() == {apache.broker}

    members = await admin.clients.consumers(apache.broker, "readers")
    assert members is not None
    assert [member.client_id for member in members.connection_set] == [instance.client_id]
    assert members.connection_set[0].language == "PYTHON"
    assert members.message_model == "CLUSTERING"
    assert set(members.subscription_table) == {"watched"}
    assert await admin.clients.consumer_ids(apache.broker, "readers") == [instance.client_id]

    queue_id = sent.queue.queue_id
    # A young topic: the broker says 0 for a group that has committed nothing, when asked leniently.
    assert await admin.offsets.committed(apache.broker, "readers", "watched", queue_id, zero_if_not_found=False) is None
    await admin.offsets.commit(apache.broker, "readers", "watched", queue_id, 1)
    assert await admin.offsets.committed(apache.broker, "readers", "watched", queue_id) == 1
    stats = await admin.offsets.consume_stats(apache.broker, "readers")
    assert stats.queues[sent.queue].consumer_offset == 1
    assert stats.queues[sent.queue].broker_offset == 1
    assert (await admin.offsets.all_committed(apache.broker))["watched", "readers"][queue_id] == 1

    await instance.heartbeats.remove_consumer("readers")
    assert await admin.clients.consumer_ids(apache.broker, "readers") == []


async def test_running_info_comes_from_the_client_through_the_broker(
    apache: ApacheRocketMQ, instance: ClientInstance, admin: Admin, producer: Producer
) -> None:
    """The broker passes the question on to us; our handler's answer comes back as it was."""
    sent = await producer.send("told", b"x")
    info = ConsumerRunningInfo(properties={"a": "b"}, queues={sent.queue: ProcessQueueInfo(commit_offset=5)})
    instance.connections.on_request[RequestCode.GET_CONSUMER_RUNNING_INFO] = lambda _, request: response(
        request, ResponseCode.SUCCESS, body=write_running_info(info)
    )
    entry = ConsumerData(group_name="tellers")
    instance.heartbeats.add_consumer("tellers", lambda: entry)
    assert await instance.heartbeats.send_now() == {apache.broker}
    told = await admin.clients.running_info(apache.broker, "tellers", instance.client_id)
    assert told.queues[sent.queue].commit_offset == 5
    assert told.properties["a"] == "b"
    await instance.heartbeats.remove_consumer("tellers")
    with pytest.raises(BrokerRefused, match="not online"):
        await admin.clients.running_info(apache.broker, "tellers", instance.client_id)


async def test_members_hear_when_another_one_joins(
    apache: ApacheRocketMQ, instance: ClientInstance, producer: Producer
) -> None:
    await producer.send("shared", b"x")
    heard: list[str] = []
    instance.connections.on_request[RequestCode.NOTIFY_CONSUMER_IDS_CHANGED] = lambda _, request: heard.append(
        request.ext_fields["consumerGroup"]
    )
    entry = ConsumerData(group_name="pair", subscription_data_set=[SubscriptionData(topic="shared", sub_version=1)])
    instance.heartbeats.add_consumer("pair", lambda: entry)
    assert await instance.heartbeats.send_now()
    other = ClientInstance(apache.namesrv, config=PATIENT)
    try:
        await other.routes.get("shared")
        other.heartbeats.add_consumer("pair", lambda: entry)
        heard.clear()
        assert await other.heartbeats.send_now() == {apache.broker}
        await eventually(lambda: heard == ["pair"])
        await other.heartbeats.remove_consumer("pair")
        await eventually(lambda: heard == ["pair", "pair"])
    finally:
        await other.close()
        await instance.heartbeats.remove_consumer("pair")


async def test_a_parked_pull_does_not_hold_up_other_requests(
    apache: ApacheRocketMQ, instance: ClientInstance, admin: Admin, producer: Producer
) -> None:
    sent = await producer.send("parked", b"x")
    await reached(apache, admin, sent.queue, 1)
    entry = ConsumerData(group_name="parkers", subscription_data_set=[SubscriptionData(topic="parked", sub_version=1)])
    instance.heartbeats.add_consumer("parkers", lambda: entry)
    assert await instance.heartbeats.send_now()
    header = PullMessageHeader(
        consumer_group="parkers",
        topic="parked",
        queue_id=sent.queue.queue_id,
        queue_offset=1,
        max_msg_nums=32,
        sys_flag=2,
        commit_offset=0,
        suspend_timeout_millis=15_000,
        sub_version=1,
    )
    request = Command(code=RequestCode.PULL_MESSAGE, ext_fields=write_header(header))
    pull = asyncio.create_task(instance.connections.request(apache.broker, request, 20_000))
    assert await admin.offsets.min(apache.broker, "parked", sent.queue.queue_id) == 0
    assert not pull.done()
    await producer.send("parked", b"second", queue=sent.queue)
    answer = await pull
    (message,) = decode_messages(bytes(answer.body))
    assert message.body == b"second"
    await instance.heartbeats.remove_consumer("parkers")
