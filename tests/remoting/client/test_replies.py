from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from remoting.client.errors import ClientError, NoReply, SendFailed
from remoting.client.producer import Producer
from remoting.connection import Connection
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.compression import compress
from remoting.wire.errors import MessageError
from remoting.wire.headers.replies import ReplyMessageHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.properties import decode_properties, encode_properties
from tests.support.answering_server import AnsweringServer, route_to
from tests.support.waiting import eventually

SEND, REPLY, PUSH = (
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_REPLY_MESSAGE_V2,
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
)
STORED = {"msgId": "PLACE", "queueId": "0", "queueOffset": "0"}


class Broker(AnsweringServer):
    """Replies to every request with its own body, twice; `pushed` are the client's answers to that."""

    def __init__(self) -> None:
        super().__init__()
        self.pushed: list[Command] = []
        self._pushing: set[asyncio.Task[None]] = set()
        self.answers[SEND] = self.store

    def store(self, connection: Connection, request: Command) -> Command:
        asked = decode_properties(request.ext_fields["i"])
        body, sys_flag = compress(bytes(request.body) * 2)
        header = ReplyMessageHeader(
            producer_group="answerers",
            topic="c_REPLY_TOPIC",
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=0,
            sys_flag=sys_flag,
            born_timestamp=17,
            flag=0,
            properties=encode_properties({"CORRELATION_ID": asked["CORRELATION_ID"], "UNIQ_KEY": "R1"}),
            born_host="127.0.0.1:1",
            store_host="127.0.0.1:2",
            store_timestamp=18,
        )
        self.push(connection, Command(code=PUSH, ext_fields=write_header(header), body=body))
        return response(request, ResponseCode.SUCCESS, ext_fields=STORED)

    def push(self, connection: Connection, command: Command) -> None:
        async def pushing() -> None:
            self.pushed.append(await connection.request(command, 60_000))

        task = asyncio.create_task(pushing())
        self._pushing.add(task)
        task.add_done_callback(self._pushing.discard)


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        broker.serve_routes({name: route_to(("a", broker.address)) for name in ("prices", "c_REPLY_TOPIC")})
        yield broker


@pytest_asyncio.fixture
async def producer(broker: Broker) -> AsyncIterator[Producer]:
    producer = Producer(broker.address, "askers", timeout_ms=60_000)
    await producer.start()
    yield producer
    await producer.close()


async def test_requests_get_their_own_replies(broker: Broker, producer: Producer) -> None:
    replies = await asyncio.gather(*(producer.request("prices", b"%d" % number, tags="t") for number in range(20)))
    assert [reply.body for reply in replies] == [b"%d" % number * 2 for number in range(20)]
    assert (replies[0].id, replies[0].topic, replies[0].born_ms, replies[0].queue) == ("R1", "c_REPLY_TOPIC", 17, None)
    asked = [decode_properties(request.ext_fields["i"]) for request in broker.of_code(SEND)]
    assert len({one["CORRELATION_ID"] for one in asked}) == 20
    assert {(one["REPLY_TO_CLIENT"], one["TTL"]) for one in asked} == {(producer.instance.client_id, "60000")}
    await eventually(lambda: [each.code for each in broker.pushed] == [ResponseCode.SUCCESS] * 20)


@pytest.mark.slow
async def test_a_request_that_nobody_answers_ends_in_time_and_says_what_to_look_at(
    broker: Broker, producer: Producer
) -> None:
    broker.answers[SEND] = lambda _, request: response(request, ResponseCode.SUCCESS, ext_fields=STORED)
    with pytest.raises(NoReply, match=r"no reply to request \w+ on topic 'prices' within 1000 ms: see that a consumer"):
        await producer.request("prices", b"x", timeout_ms=1000)


async def test_a_late_reply_or_nonsense_disturbs_nobody(broker: Broker, producer: Producer) -> None:
    await producer.request("prices", b"x")
    store = broker.answers[SEND]
    asked = broker.of_code(SEND)[0]
    for connection in broker.connections:
        store(connection, asked)  # its request is answered already
        broker.push(connection, Command(code=PUSH, ext_fields={"topic": "t"}))
    await eventually(lambda: len(broker.pushed) == 3)
    assert sorted(each.code for each in broker.pushed) == [0, 0, ResponseCode.SYSTEM_ERROR]
    assert (await producer.request("prices", b"y")).body == b"yy"


async def test_too_many_requests_at_once_are_refused(producer: Producer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remoting.client.replies.WAITING_MAX", 1)
    results = await asyncio.gather(*(producer.request("prices", b"x") for _ in range(2)), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["ClientError", "ReceivedMessage"]
    assert any("1 requests wait" in str(result) for result in results if isinstance(result, ClientError))


async def test_a_reply_goes_to_the_clusters_reply_topic_with_what_it_answers(
    broker: Broker, producer: Producer
) -> None:
    broker.answers[REPLY] = lambda _, request: response(request, ResponseCode.SUCCESS, ext_fields=STORED)
    request = {"CLUSTER": "c", "CORRELATION_ID": "C1", "REPLY_TO_CLIENT": "asker", "TTL": "3000", "UNIQ_KEY": "Q1"}
    result = await producer.reply(request, b"yes")
    (sent,) = broker.of_code(REPLY)
    assert (sent.ext_fields["b"], bytes(sent.body)) == ("c_REPLY_TOPIC", b"yes")
    assert decode_properties(sent.ext_fields["i"]) == {
        "UNIQ_KEY": result.message_id,
        "MSG_TYPE": "reply",
        "CORRELATION_ID": "C1",
        "REPLY_TO_CLIENT": "asker",
        "TTL": "3000",
    }


@pytest.mark.parametrize("missing", ["CLUSTER", "CORRELATION_ID", "REPLY_TO_CLIENT"])
async def test_a_message_that_is_no_request_gets_no_reply(producer: Producer, missing: str) -> None:
    request = {"CLUSTER": "c", "CORRELATION_ID": "C1", "REPLY_TO_CLIENT": "asker"}
    del request[missing]
    with pytest.raises(MessageError, match=f"is no request, it has no property {missing}"):
        await producer.reply(request, b"yes")


async def test_a_reply_to_somebody_who_is_gone_fails_with_the_brokers_words(broker: Broker) -> None:
    producer = Producer(broker.address, "answerers", pauses_s=(0.01,))
    await producer.start()
    broker.refuse(REPLY, ResponseCode.SYSTEM_ERROR, "push reply message fail, channel of <asker> not found.")
    request = {"CLUSTER": "c", "CORRELATION_ID": "C1", "REPLY_TO_CLIENT": "asker"}
    with pytest.raises(SendFailed, match="channel of <asker> not found"):
        await producer.reply(request, b"yes")
    await producer.close()
