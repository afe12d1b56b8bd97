"""Transactional messages for Django code: delivered if, and only if, a local transaction was committed.

    def was_booked(message):                      # asked by brokers, in a thread: what does the database say?
        return State.COMMIT if Booking.objects.filter(key=message.id).exists() else State.ROLLBACK

    bookings = TransactionalProducer("bookings", check=was_booked)

    def book(message_id):
        with transaction.atomic():
            Booking.objects.create(key=message_id, …)
        return State.COMMIT

    bookings.send("orders", {"id": 17}, execute=book)

The broker keeps the message while `execute` runs, and asks `check` of any process of the producer group when it did
not hear the end. A process answers from its first send on, or from `start()`. Where the local transaction is one of
Django's own database, the outbox (`producer.send_by_outbox`) needs no check and works while no broker is there.
"""

from __future__ import annotations

import atexit
import functools
import logging
from collections.abc import Callable
from typing import Unpack

from django.db import close_old_connections

from consumer.background_producer import BackgroundProducer
from consumer.group_key import DEFAULT_CLUSTER
from consumer.producer import Body, encode_body
from remoting.client.outgoing import MessageOptions
from remoting.client.producer import Producer
from remoting.client.received_message import ReceivedMessage
from remoting.client.trace import TraceDispatcher
from remoting.client.transactions import Half, State, TransactionResult, Transactions

logger = logging.getLogger(__name__)

__all__ = ["State", "TransactionResult", "TransactionalProducer"]


class TransactionalProducer:
    """One producer group of transactions; make it once, in a module that every process of the group imports.

    `check` gets the message as consumers would, `id` being what `execute` got, and returns a State.
    """

    def __init__(
        self, group: str, *, check: Callable[[ReceivedMessage], State], cluster: str = DEFAULT_CLUSTER
    ) -> None:
        self._check = _with_connections(check)
        self._background = BackgroundProducer(group, cluster, prepare=self._prepare)
        self._transactions: Transactions | None = None
        atexit.register(self.close)

    def start(self, *topics: str) -> None:
        """Makes this process answer checks before its first send: at the brokers that have these topics.

        Raises RouteNotFound for a topic that no broker has, and no broker would create.
        """

        async def register(producer: Producer) -> None:
            for topic in topics:
                await producer.publish_queues(topic)
            await producer.instance.heartbeats.send_now()

        self._background.run(register)

    def send(
        self, topic: str, body: Body, *, execute: Callable[[str], State], **options: Unpack[MessageOptions]
    ) -> TransactionResult:
        """Sends a half message, calls `execute(message_id)` in this thread, and tells the broker what it returned.

        An error of `execute` is logged and counts as UNKNOWN: the broker will ask. `options` as for `producer.send`,
        but no delay. Raises as `producer.send`, before `execute` is called.
        """
        encoded = encode_body(body)
        half = self._background.run(lambda _: self._ready().send_half(topic, encoded, **options))
        state, remark = _executed(execute, half) if half.is_safe else (State.ROLLBACK, None)
        self._background.run(lambda _: self._ready().end(half, state, remark))
        return TransactionResult(half, state)

    def close(self) -> None:
        """Answers no checks any more; the next send starts anew."""
        self._background.close()

    def _prepare(self, producer: Producer, trace: TraceDispatcher | None) -> None:
        self._transactions = Transactions(producer, self._check, trace=trace.record if trace else None)

    def _ready(self) -> Transactions:
        if self._transactions is None:
            raise RuntimeError("the producer of these transactions was not made")
        return self._transactions


def _executed(execute: Callable[[str], State], half: Half) -> tuple[State, str | None]:
    try:
        said = execute(half.message_id)
    except Exception as error:
        logger.exception("the local transaction of message %s failed: its state is unknown", half.message_id)
        return State.UNKNOWN, repr(error)
    if said in tuple(State):
        return State(said), None
    logger.error("the local transaction of message %s returned %r, not a State", half.message_id, said)
    return State.UNKNOWN, f"the listener returned {said!r}"


def _with_connections(check: Callable[[ReceivedMessage], State]) -> Callable[[ReceivedMessage], State]:
    """Closes old and broken database connections around each check, as Django does for a request."""

    @functools.wraps(check)
    def wrapper(message: ReceivedMessage) -> State:
        close_old_connections()
        try:
            return check(message)
        finally:
            close_old_connections()

    return wrapper
