from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from remoting.client.errors import ClientError
from remoting.client.producer import Producer
from remoting.client.received_message import ReceivedMessage
from remoting.client.transactions import Check, State, Transactions
from remoting.wire.bodies.trace import MessageType, TraceRecord
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.transactions import CheckTransactionStateHeader, EndTransactionHeader
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.message_id import offset_message_id
from remoting.wire.properties import decode_properties, encode_properties
from remoting.wire.stored_message import StoredMessage, encode_message
from tests.support.answering_server import AnsweringServer, route_to
from tests.support.waiting import eventually

SEND, END = RequestCode.SEND_MESSAGE_V2, RequestCode.END_TRANSACTION
PLACE = offset_message_id(("10.0.0.1", 10911), 4711)


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[AnsweringServer]:
    """Name server and broker; halves are stored at queue offset 7, commit-log offset 4711."""
    async with AnsweringServer() as server:
        server.serve_routes({"orders": route_to(("a", server.address), queues=1)})
        server.succeed(SEND, msgId=PLACE, queueId=0, queueOffset=7, transactionId="T1")
        yield server


@pytest_asyncio.fixture
async def producer(broker: AnsweringServer) -> AsyncIterator[Producer]:
    producer = Producer(broker.address, "billing", timeout_ms=60_000)
    await producer.start()
    yield producer
    await producer.close()


def committing(_: ReceivedMessage) -> State:
    return State.COMMIT


async def ended(broker: AnsweringServer, count: int = 1) -> list[EndTransactionHeader]:
    await eventually(lambda: len(broker.of_code(END)) == count)
    assert all(request.is_oneway for request in broker.of_code(END))
    return [read_header(EndTransactionHeader, request.ext_fields) for request in broker.of_code(END)]


def ask(broker: AnsweringServer, group: str = "billing", body: bytes = b"order 17") -> None:
    """Sends a check as brokers do, on the producer's connection."""
    properties = {"UNIQ_KEY": "KEY", "PGROUP": group, "TAGS": "paid", "KEYS": "k1", "TRAN_MSG": "true"}
    half = StoredMessage(topic="orders", queue_id=0, body=body, properties_text=encode_properties(properties))
    header = CheckTransactionStateHeader(
        topic="RMQ_SYS_TRANS_HALF_TOPIC",
        tran_state_table_offset=8,
        commit_log_offset=5000,
        msg_id="KEY",
        transaction_id="KEY",
        offset_msg_id="PLACE",
        bname="a",
    )
    check = Command(
        code=RequestCode.CHECK_TRANSACTION_STATE, ext_fields=write_header(header), body=encode_message(half)
    )
    for connection in broker.connections:
        connection.requester.send_oneway(check)


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
async def test_a_half_is_marked_and_its_end_told_by_its_place(
    broker: AnsweringServer, producer: Producer, state: State
) -> None:
    transactions = Transactions(producer, committing)
    executed: list[str] = []

    async def execute(message_id: str) -> State:
        executed.append(message_id)
        return state

    result = await transactions.send("orders", b"order 17", execute, tags="paid")
    (half,) = broker.of_code(SEND)
    properties = decode_properties(half.ext_fields["i"])
    assert (half.ext_fields["f"], properties["TRAN_MSG"], properties["PGROUP"]) == ("4", "true", "billing")
    assert (executed, result.state) == ([properties["UNIQ_KEY"]], state)
    (end,) = await ended(broker)
    assert (end.commit_or_rollback, end.tran_state_table_offset, end.commit_log_offset) == (state, 7, 4711)
    assert (end.producer_group, end.msg_id, end.transaction_id) == ("billing", executed[0], "T1")
    assert not end.from_transaction_check


@pytest.mark.parametrize(
    ("execute", "remark"),
    [(lambda _: 1 / 0, "ZeroDivisionError"), (lambda _: None, "returned None"), (lambda _: "yes", "returned 'yes'")],
    ids=["raises", "nothing", "nonsense"],
)
async def test_a_listener_that_does_not_say_leaves_the_state_unknown(
    broker: AnsweringServer, producer: Producer, execute: Callable[[str], Any], remark: str
) -> None:
    result = await Transactions(producer, committing).send("orders", b"x", execute)
    assert result.state is State.UNKNOWN
    await ended(broker)
    assert remark in (broker.of_code(END)[0].remark or "")


@pytest.mark.parametrize(
    "code",
    [ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.FLUSH_SLAVE_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE],
    ids=lambda code: code.name,
)
async def test_a_half_that_may_be_lost_is_rolled_back_without_the_local_transaction(
    broker: AnsweringServer, producer: Producer, code: ResponseCode
) -> None:
    fields = {"msgId": PLACE, "queueId": "0", "queueOffset": "7"}
    broker.answers[SEND] = lambda _, request: response(request, code, ext_fields=fields)
    executed: list[str] = []
    result = await Transactions(producer, committing).send("orders", b"x", executed.append)  # type: ignore[arg-type]
    assert (result.state, executed) == (State.ROLLBACK, [])
    (end,) = await ended(broker)
    assert end.commit_or_rollback == State.ROLLBACK


async def test_an_end_that_cannot_be_told_is_no_error(broker: AnsweringServer, producer: Producer) -> None:
    transactions = Transactions(producer, committing)
    half = await transactions.send_half("orders", b"x")
    await broker.stop()
    await eventually(lambda: not broker.connections)
    await transactions.end(half, State.COMMIT)


async def test_a_delayed_message_is_refused(producer: Producer) -> None:
    with pytest.raises(MessageError, match="of a transaction cannot be delayed"):
        await Transactions(producer, committing).send_half("orders", b"x", delay_level=1)


async def _committing(message: ReceivedMessage) -> State:
    return State.COMMIT if message.body == b"order 17" else State.ROLLBACK


@pytest.mark.parametrize("check", [committing, _committing], ids=["plain", "async"])
async def test_a_check_is_answered_on_its_connection_by_what_the_listener_says(
    broker: AnsweringServer, producer: Producer, check: Check
) -> None:
    seen: list[TraceRecord] = []
    transactions = Transactions(producer, check, trace=seen.append)
    await transactions.send_half("orders", b"x")
    ask(broker)
    (end,) = await ended(broker)
    assert (end.commit_or_rollback, end.from_transaction_check) == (State.COMMIT, True)
    assert (end.tran_state_table_offset, end.commit_log_offset, end.msg_id) == (8, 5000, "KEY")
    (record,) = seen
    assert (record.kind, record.topic, record.message_id, record.keys) == ("EndTransaction", "orders", "KEY", "k1")
    assert (record.transaction_state, record.is_from_check) == ("COMMIT_MESSAGE", True)
    assert (record.message_type, record.store_host) == (MessageType.COMMITTED, broker.address)


async def test_a_check_that_fails_or_is_not_ours_ends_nothing(broker: AnsweringServer, producer: Producer) -> None:
    def failing(_: ReceivedMessage) -> State:
        raise KeyError("no such order")

    transactions = Transactions(producer, failing)
    await transactions.send_half("orders", b"x")
    ask(broker, group="others")
    for connection in broker.connections:
        connection.requester.send_oneway(Command(code=RequestCode.CHECK_TRANSACTION_STATE, body=b"nonsense"))
    ask(broker)
    (end,) = await ended(broker)
    assert end.commit_or_rollback == State.UNKNOWN
    assert "no such order" in (broker.of_code(END)[0].remark or "")


async def test_checks_wait_for_each_other_and_none_is_lost(broker: AnsweringServer, producer: Producer) -> None:
    running: list[int] = [0, 0]

    async def check(_: ReceivedMessage) -> State:
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0)
        running[0] -= 1
        return State.COMMIT

    transactions = Transactions(producer, check)
    await transactions.send_half("orders", b"x")
    for _ in range(50):
        ask(broker)
    await ended(broker, 50)
    assert running[1] <= 4


async def test_a_group_has_one_listener(producer: Producer) -> None:
    Transactions(producer, committing)
    with pytest.raises(ClientError, match="answers the transaction checks of group 'billing' already"):
        Transactions(producer, committing)
