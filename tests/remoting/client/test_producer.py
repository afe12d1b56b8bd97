from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest
import pytest_asyncio

from remoting.client.config import ClientConfig
from remoting.client.errors import BrokerRefused, ClientError, NotConnected, RouteNotFound, SendFailed
from remoting.client.instance import ClientInstance
from remoting.client.name_servers import NameServersUnreachable
from remoting.client.outgoing import Message
from remoting.client.producer import Producer
from remoting.client.retrying_sender import RETRIABLE_CODES
from remoting.client.send_result import SendStatus
from remoting.connection import Connection
from remoting.wire.batch import decode_batch
from remoting.wire.bodies.heartbeat import read_heartbeat
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import TopicRouteData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.send import SendMessageHeaderV2
from remoting.wire.headers.typed import read_header
from remoting.wire.properties import decode_properties
from tests.support.answering_server import AnsweringServer, route_to
from tests.support.children import free_port
from tests.support.waiting import eventually

SEND = RequestCode.SEND_MESSAGE_V2
Table = dict[str, TopicRouteData]


class Broker(AnsweringServer):
    """Stores what is sent, as it was asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets = count()
        self.answers[SEND] = self.answers[RequestCode.SEND_BATCH_MESSAGE] = self.store

    def store(self, _: Connection, request: Command) -> Command:
        ids = "OFFSET-ID"
        if request.code == RequestCode.SEND_BATCH_MESSAGE:
            ids = ",".join(["OFFSET-ID"] * len(decode_batch(request.body)))
        fields = {"msgId": ids, "queueId": request.ext_fields["e"], "queueOffset": str(next(self.offsets))}
        return response(request, ResponseCode.SUCCESS, ext_fields=fields)

    def sent(self) -> list[SendMessageHeaderV2]:
        return [read_header(SendMessageHeaderV2, request.ext_fields) for request in self.of_code(SEND)]


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        yield broker


@pytest_asyncio.fixture
async def other() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        yield broker


@pytest.fixture
def table(broker: Broker) -> Table:
    return {"orders": route_to(("a", broker.address))}


@pytest_asyncio.fixture
async def namesrv(table: Table) -> AsyncIterator[AnsweringServer]:
    async with AnsweringServer() as server:
        server.serve_routes(table)
        yield server


@pytest_asyncio.fixture
async def producer(namesrv: AnsweringServer) -> AsyncIterator[Producer]:
    producer = Producer(namesrv.address, "senders", pauses_s=(0.01, 0.5))
    await producer.start()
    yield producer
    await producer.close()


async def test_a_message_is_sent_with_the_letters_of_the_second_header(broker: Broker, producer: Producer) -> None:
    result = await producer.send("orders", b"hello", tags="a", keys=["k"], properties={"p": "v"}, delay_level=3, flag=7)
    (header,) = broker.sent()
    assert (header.producer_group, header.topic, header.flag, header.sys_flag) == ("senders", "orders", 7, 0)
    assert (header.default_topic, header.default_topic_queue_nums, header.bname) == ("TBW102", 4, "a")
    assert not header.batch
    assert decode_properties(header.properties or "") == {
        "p": "v",
        "UNIQ_KEY": result.message_id,
        "TAGS": "a",
        "KEYS": "k",
        "DELAY": "3",
    }
    assert bytes(broker.of_code(SEND)[0].body) == b"hello"
    assert result.queue == MessageQueue("orders", "a", header.queue_id)
    assert (result.offset_message_id, result.queue_offset, result.status) == ("OFFSET-ID", 0, SendStatus.SEND_OK)


async def test_a_producer_sends_a_heartbeat_before_its_first_message_and_unregisters_when_it_closes(
    broker: Broker, namesrv: AnsweringServer
) -> None:
    producer = Producer(namesrv.address, "senders")
    await producer.start()
    await producer.send("orders", b"x")
    await producer.close()
    assert broker.asked_codes() == [RequestCode.HEART_BEAT, SEND, RequestCode.UNREGISTER_CLIENT]
    heartbeat = read_heartbeat(broker.asked[0].body)
    assert [data.group_name for data in heartbeat.producer_data_set] == ["senders"]
    assert broker.asked[2].ext_fields == {"clientID": heartbeat.client_id, "producerGroup": "senders"}
    assert namesrv.asked_codes() == [RequestCode.GET_ROUTEINFO_BY_TOPIC]


async def test_messages_go_round_the_queues_of_all_brokers(
    broker: Broker, other: Broker, table: Table, producer: Producer
) -> None:
    table["orders"] = route_to(("a", broker.address), ("b", other.address), queues=2)
    results = await asyncio.gather(*(producer.send("orders", b"x") for _ in range(8)))
    used = sorted((result.queue.broker_name, result.queue.queue_id) for result in results)
    assert used == [("a", 0), ("a", 0), ("a", 1), ("a", 1), ("b", 0), ("b", 0), ("b", 1), ("b", 1)]


@pytest.mark.parametrize("code", sorted(RETRIABLE_CODES), ids=lambda code: code.name)
async def test_a_retriable_refusal_is_tried_on_another_broker(
    broker: Broker, other: Broker, table: Table, producer: Producer, code: ResponseCode
) -> None:
    table["orders"] = route_to(("a", broker.address), ("b", other.address))
    broker.refuse(SEND, code)
    results = [await producer.send("orders", b"x") for _ in range(8)]
    assert {result.queue.broker_name for result in results} == {"b"}
    assert broker.of_code(SEND)


@pytest.mark.parametrize("code", [ResponseCode.MESSAGE_ILLEGAL, ResponseCode.INVALID_PARAMETER, 604], ids=str)
async def test_another_refusal_is_raised_at_once_with_topic_address_and_words(
    broker: Broker, producer: Producer, code: int
) -> None:
    broker.refuse(SEND, code, "not this one\nat java.lang.Thread")
    with pytest.raises(BrokerRefused) as caught:
        await producer.send("orders", b"x")
    assert caught.value.code == code
    assert f"{broker.address} refused SEND_MESSAGE_V2 for topic 'orders'" in str(caught.value)
    assert "not this one" in str(caught.value)
    assert "java.lang" not in str(caught.value)
    assert len(broker.of_code(SEND)) == 1


@pytest.mark.slow
async def test_the_message_keeps_its_id_over_all_attempts(broker: Broker, producer: Producer) -> None:
    broker.refuse(SEND, ResponseCode.SYSTEM_BUSY, "broker busy")
    with pytest.raises(SendFailed, match=r"'orders' failed after 3 attempts: 1\. .*SYSTEM_BUSY.*broker busy") as caught:
        await producer.send("orders", b"x")
    assert len(caught.value.attempts) == 3
    assert len({decode_properties(header.properties or "")["UNIQ_KEY"] for header in broker.sent()}) == 1


async def test_a_dead_broker_is_passed_over(broker: Broker, table: Table, producer: Producer) -> None:
    table["orders"] = route_to(("a", broker.address), ("dead", f"127.0.0.1:{free_port()}"))
    results = [await producer.send("orders", b"x") for _ in range(8)]
    assert {result.queue.broker_name for result in results} == {"a"}


@pytest.mark.slow
async def test_a_broker_that_restarts_meanwhile_gets_the_message(broker: Broker, namesrv: AnsweringServer) -> None:
    # The second pause is long enough for a busy machine to start the broker in.
    producer = Producer(namesrv.address, "senders", pauses_s=(0.01, 2.0), timeout_ms=60_000)
    await producer.start()
    await producer.send("orders", b"x")
    await broker.stop()
    sending = asyncio.create_task(producer.send("orders", b"y"))
    await asyncio.sleep(0.05)
    await broker.start()
    assert (await sending).status is SendStatus.SEND_OK
    await producer.close()


async def test_a_broker_that_moved_is_found_by_its_new_address(
    broker: Broker, other: Broker, table: Table, namesrv: AnsweringServer
) -> None:
    instance = ClientInstance(namesrv.address, config=ClientConfig(route_expired_age_s=0.0))
    producer = Producer(namesrv.address, "senders", instance=instance)
    await producer.start()
    await producer.send("orders", b"x")
    await broker.stop()
    table["orders"] = route_to(("a", other.address))
    assert (await producer.send("orders", b"y")).queue.broker_name == "a"
    assert len(other.of_code(SEND)) == 1
    await producer.close()
    await instance.close()


@pytest.mark.slow
async def test_a_silent_broker_costs_no_more_than_the_time_of_the_send(broker: Broker, producer: Producer) -> None:
    await producer.send("orders", b"x")  # it knows the route and has a connection
    broker.answers[SEND] = lambda *_: None
    producer.timeout_ms = 600_000
    async with asyncio.timeout(60):
        with pytest.raises(SendFailed, match="did not answer SEND_MESSAGE_V2"):
            await producer.send("orders", b"x", timeout_ms=1000)


@pytest.mark.slow
async def test_a_silent_name_server_costs_no_more_than_the_time_of_the_send(
    namesrv: AnsweringServer, producer: Producer
) -> None:
    namesrv.answers[RequestCode.GET_ROUTEINFO_BY_TOPIC] = lambda *_: None
    producer.timeout_ms = 600_000
    async with asyncio.timeout(60):
        with pytest.raises(SendFailed, match="GET_ROUTEINFO_BY_TOPIC"):
            await producer.send("orders", b"x", timeout_ms=1000)


@pytest.mark.parametrize("code", [10, 11, 12])
async def test_a_message_whose_replica_was_not_confirmed_counts_as_sent(
    broker: Broker, producer: Producer, code: int
) -> None:
    fields = {"msgId": "X", "queueId": "1", "queueOffset": "5"}
    broker.answers[SEND] = lambda _, request: response(request, code, ext_fields=fields)
    result = await producer.send("orders", b"x")
    assert result.status == code
    assert result.queue_offset == 5
    assert len(broker.of_code(SEND)) == 1


async def test_a_chosen_queue_is_tried_once_and_no_other(broker: Broker, producer: Producer) -> None:
    queue = MessageQueue("orders", "a", 3)
    assert (await producer.send("orders", b"x", queue=queue)).queue == queue
    assert (await producer.send("orders", b"x", selector=lambda queues: queues[3])).queue == queue
    broker.refuse(SEND, ResponseCode.SYSTEM_BUSY)
    with pytest.raises(SendFailed, match="after 1 attempt:"):
        await producer.send("orders", b"x", queue=queue)


async def test_a_queue_of_an_unknown_broker_is_named(producer: Producer) -> None:
    with pytest.raises(SendFailed, match="nowhere: no route names a master"):
        await producer.send("orders", b"x", queue=MessageQueue("orders", "nowhere", 0))


async def test_a_oneway_is_marked_sent_once_and_not_answered(broker: Broker, producer: Producer) -> None:
    message_id = await producer.send_oneway("orders", b"x", tags="a")
    await eventually(lambda: broker.of_code(SEND))
    assert broker.of_code(SEND)[0].is_oneway
    assert decode_properties(broker.sent()[0].properties or "")["UNIQ_KEY"] == message_id


async def test_a_oneway_to_a_dead_broker_is_an_error(table: Table, producer: Producer) -> None:
    table["orders"] = route_to(("dead", f"127.0.0.1:{free_port()}"))
    with pytest.raises(NotConnected):
        await producer.send_oneway("orders", b"x")


async def test_a_batch_is_marked_and_answered_message_by_message(broker: Broker, producer: Producer) -> None:
    results = await producer.send_batch("orders", [Message(b"one"), Message(b"two")])
    (request,) = broker.of_code(RequestCode.SEND_BATCH_MESSAGE)
    header = read_header(SendMessageHeaderV2, request.ext_fields)
    assert header.batch
    entries = decode_batch(request.body)
    assert [entry.body for entry in entries] == [b"one", b"two"]
    assert [decode_properties(entry.properties_text)["UNIQ_KEY"] for entry in entries] == [
        result.message_id for result in results
    ]


async def test_a_batch_that_fails_half_way_says_what_was_stored(broker: Broker, producer: Producer) -> None:
    requests = count()

    def first_only(connection: Connection, request: Command) -> Command:
        return broker.store(connection, request) if next(requests) == 0 else response(request, 13, "illegal")

    broker.answers[RequestCode.SEND_BATCH_MESSAGE] = first_only
    messages = [Message(bytes([number]) * 1_500_000) for number in range(1, 6)]
    with pytest.raises(SendFailed, match="2 messages of the batch were stored before") as caught:
        await producer.send_batch("orders", messages)
    assert len(caught.value.sent) == 2


async def test_a_message_is_forwarded_as_it_is(broker: Broker, producer: Producer) -> None:
    properties = {"UNIQ_KEY": "mine", "RETRY_TOPIC": "orders", "RECONSUME_TIME": "2"}
    result = await producer.forward(
        "orders", b"compressed", properties, flag=1, sys_flag=0x301, reconsume_times=2, max_reconsume_times=16
    )
    assert result.message_id == "mine"
    (header,) = broker.sent()
    assert decode_properties(header.properties or "") == properties
    assert (header.flag, header.sys_flag, header.reconsume_times, header.max_reconsume_times) == (1, 0x301, 2, 16)


async def test_a_forwarded_message_without_an_id_gets_one(broker: Broker, producer: Producer) -> None:
    result = await producer.forward("orders", b"x", {})
    assert decode_properties(broker.sent()[0].properties or "") == {"UNIQ_KEY": result.message_id}


async def test_a_topic_created_by_the_first_send_uses_the_template_route(
    broker: Broker, table: Table, producer: Producer
) -> None:
    table["TBW102"] = route_to(("a", broker.address), queues=8, perm=7)
    result = await producer.send("new", b"x")
    assert result.queue.queue_id < 4
    assert broker.sent()[0].default_topic == "TBW102"


async def test_a_topic_without_route_or_writable_queue_is_refused(
    broker: Broker, table: Table, producer: Producer
) -> None:
    with pytest.raises(RouteNotFound):
        await producer.send("missing", b"x")
    table["full"] = route_to(("a", broker.address), perm=4)
    with pytest.raises(SendFailed, match="lets topic 'full' be written: give the topic"):
        await producer.send("full", b"x")


async def test_no_name_server_is_one_clear_error() -> None:
    address = f"127.0.0.1:{free_port()}"
    producer = Producer(address, "senders")
    await producer.start()
    with pytest.raises(NameServersUnreachable, match=f"{address}: Connection refused"):
        await producer.send("orders", b"x")
    await producer.close()


async def test_bad_messages_topics_and_groups_are_refused_before_anything_is_sent(
    broker: Broker, namesrv: AnsweringServer, producer: Producer
) -> None:
    with pytest.raises(MessageError, match="empty"):
        await producer.send("orders", b"")
    with pytest.raises(MessageError, match="'or ders'"):
        await producer.send("or ders", b"x")
    with pytest.raises(MessageError, match="written by brokers only"):
        await producer.send_oneway("SCHEDULE_TOPIC_XXXX", b"x")
    with pytest.raises(MessageError, match="group name"):
        Producer(namesrv.address, "a b")
    assert broker.asked == namesrv.asked == []


async def test_closing_waits_for_the_sends_in_flight(broker: Broker, namesrv: AnsweringServer) -> None:
    parked: list[tuple[Connection, Command]] = []
    broker.answers[SEND] = lambda connection, request: parked.append((connection, request))
    producer = Producer(namesrv.address, "senders")
    await producer.start()
    sending = asyncio.create_task(producer.send("orders", b"x"))
    await eventually(lambda: parked)
    closing = asyncio.create_task(producer.close())
    await asyncio.sleep(0.02)
    assert not closing.done()
    with pytest.raises(ClientError, match="'senders' is not running"):
        await producer.send("orders", b"late")
    connection, request = parked[0]
    connection.send(broker.store(connection, request))
    assert (await sending).status is SendStatus.SEND_OK
    await closing
    await eventually(lambda: not broker.connections)


async def test_a_producer_that_was_not_started_sends_nothing(namesrv: AnsweringServer) -> None:
    with pytest.raises(ClientError, match=r"call start\(\) first"):
        await Producer(namesrv.address, "senders").send("orders", b"x")


async def test_closing_leaves_no_task_behind(namesrv: AnsweringServer) -> None:
    before = asyncio.all_tasks()
    producer = Producer(namesrv.address, "senders")
    await producer.start()
    await producer.send("orders", b"x")
    await producer.close()
    assert asyncio.all_tasks() == before


async def test_an_answer_that_makes_no_sense_is_an_error_and_not_tried_again(
    broker: Broker, producer: Producer
) -> None:
    """It was stored: sending it again would store it twice."""
    broker.answers[SEND] = lambda _, request: response(request, 0)
    with pytest.raises(SendFailed, match=r"SendMessageResponseHeader.*msgId"):
        await producer.send("orders", b"x")
    assert len(broker.of_code(SEND)) == 1


async def test_a_producer_told_so_avoids_a_broker_that_answers_slowly(
    broker: Broker, other: Broker, table: Table, namesrv: AnsweringServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remoting.client.latency.LATENCIES_MS", (0,))
    monkeypatch.setattr("remoting.client.latency.NOT_AVAILABLE_MS", (60_000,))
    table["orders"] = route_to(("a", broker.address), ("b", other.address))
    producer = Producer(namesrv.address, "senders", avoids_slow_brokers=True)
    await producer.start()
    first = await producer.send("orders", b"x")
    second = await producer.send("orders", b"x")
    await producer.close()
    assert {first.queue.broker_name, second.queue.broker_name} == {"a", "b"}
    assert broker.of_code(SEND)
    assert other.of_code(SEND)


async def test_an_earlier_message_id_is_kept_and_the_recall_handle_returned(broker: Broker, producer: Producer) -> None:
    fields = {"msgId": "OFFSET-ID", "queueId": "0", "queueOffset": "5", "recallHandle": "handle"}
    broker.answers[SEND] = lambda _, request: response(request, ResponseCode.SUCCESS, ext_fields=fields)
    result = await producer.send("orders", b"x", message_id="EARLIER", delay_s=60)
    assert (result.message_id, result.recall_handle) == ("EARLIER", "handle")
    assert decode_properties(broker.sent()[0].properties or "")["UNIQ_KEY"] == "EARLIER"
