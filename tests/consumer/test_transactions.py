"""Transactions of Django code, against a broker in memory that stores halves like other messages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from consumer.transactions import State, TransactionalProducer
from remoting.client.received_message import ReceivedMessage
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.transactions import CheckTransactionStateHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.properties import Property, encode_properties
from remoting.wire.stored_message import StoredMessage, encode_message
from tests.support.broker_thread import BrokerThread
from tests.support.waiting import wait_until

END = RequestCode.END_TRANSACTION
GROUP = "bookings"


@pytest.fixture
def broker(settings: Any) -> Iterator[BrokerThread]:
    with BrokerThread() as thread:
        settings.MQADMIN_NAMESRV = thread.broker.namesrv
        settings.CONSUMER_PRODUCER = {"timeout_ms": 60_000}
        thread.broker.faults[END] = lambda request: response(request, ResponseCode.SUCCESS)
        thread.call(thread.broker.create_topic, "orders", 1)
        yield thread


@pytest.fixture
def transactional(broker: BrokerThread) -> Iterator[Callable[..., TransactionalProducer]]:
    made: list[TransactionalProducer] = []

    def make(check: Callable[[ReceivedMessage], State] = lambda _: State.COMMIT) -> TransactionalProducer:
        made.append(TransactionalProducer(GROUP, check=check))
        return made[-1]

    yield make
    for each in made:
        each.close()


def ends(broker: BrokerThread, count: int) -> list[int]:
    def seen() -> list[int]:
        return [int(fields["commitOrRollback"]) for code, fields in list(broker.broker.seen) if code == END]

    wait_until(lambda: len(seen()) == count, what="the end of a transaction")
    return seen()


def test_the_local_transaction_runs_in_the_callers_thread_and_its_end_is_told(
    broker: BrokerThread, transactional: Callable[..., TransactionalProducer]
) -> None:
    threads: list[threading.Thread] = []

    def book(message_id: str) -> State:
        threads.append(threading.current_thread())
        assert [message.unique_key for message in broker.messages("orders")] == [message_id]
        return State.COMMIT

    result = transactional().send("orders", {"id": 17}, execute=book, tags="paid")
    assert result.state is State.COMMIT
    assert threads == [threading.current_thread()]
    assert ends(broker, 1) == [State.COMMIT]
    (stored,) = broker.messages("orders")
    assert (stored.properties["TRAN_MSG"], stored.properties["PGROUP"], stored.tags) == ("true", GROUP, "paid")


@pytest.mark.parametrize("execute", [lambda _: 1 / 0, lambda _: None], ids=["raises", "says nothing"])
def test_a_local_transaction_that_does_not_say_is_left_to_the_check(
    broker: BrokerThread, transactional: Callable[..., TransactionalProducer], execute: Callable[[str], Any]
) -> None:
    assert transactional().send("orders", b"x", execute=execute).state is State.UNKNOWN
    assert ends(broker, 1) == [State.UNKNOWN]


def test_a_process_that_was_started_answers_checks_without_having_sent(
    broker: BrokerThread, transactional: Callable[..., TransactionalProducer]
) -> None:
    asked: list[str] = []

    def check(message: ReceivedMessage) -> State:
        asked.append(message.text)
        return State.ROLLBACK

    producer = transactional(check)
    producer.start("orders")
    half = StoredMessage(
        topic="orders",
        queue_id=0,
        body=b"order 17",
        properties_text=encode_properties({Property.UNIQ_KEY: "KEY", Property.PGROUP: GROUP}),
    )
    header = CheckTransactionStateHeader(tran_state_table_offset=0, commit_log_offset=0, msg_id="KEY")
    request = Command(
        code=RequestCode.CHECK_TRANSACTION_STATE, ext_fields=write_header(header), body=encode_message(half)
    )

    def ask() -> None:
        for connection in broker.broker.connections:
            connection.requester.send_oneway(request)

    broker.call(ask)
    assert ends(broker, 1) == [State.ROLLBACK]
    assert asked == ["order 17"]
