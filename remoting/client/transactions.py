"""Transactional messages: sent as halves, delivered or forgotten as a local transaction ends (`TransactionMQProducer`).

    transactions = Transactions(producer, check)
    half = await transactions.send_half("orders", body)
    ... the local transaction ...
    await transactions.end(half, State.COMMIT)

A half whose end the broker did not hear is asked about by the broker, of any client of the producer group: `check` says
from what was written, not from memory, how the transaction ended. UNKNOWN makes the broker ask again later.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Unpack

from remoting.client.errors import ClientError
from remoting.client.instance import ClientInstance
from remoting.client.outgoing import MessageOptions
from remoting.client.producer import Producer
from remoting.client.received_message import ReceivedMessage, received
from remoting.client.send_result import SendResult, SendStatus
from remoting.client.send_trace import DEFAULT_REGION
from remoting.connection import Connection
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.trace import END_TRANSACTION, MessageType, TraceRecord
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from remoting.wire.errors import WireError
from remoting.wire.headers.transactions import CheckTransactionStateHeader, EndTransactionHeader
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.message_id import decode_offset_message_id
from remoting.wire.properties import Property
from remoting.wire.stored_message import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK, decode_message

logger = logging.getLogger(__name__)

# Checks that run at once in one client; further ones wait, and beyond the client's `handler_tasks_max` are dropped: the
# broker asks again.
CHECKS_AT_ONCE_MAX = 4
# Of an error, in the request that ends a transaction.
REMARK_CHARS_MAX = 300


class State(IntEnum):
    """How a local transaction ended, as the wire says it (`LocalTransactionState`)."""

    COMMIT = TRANSACTION_COMMIT
    ROLLBACK = TRANSACTION_ROLLBACK
    UNKNOWN = 0


_JAVA_NAMES = {State.COMMIT: "COMMIT_MESSAGE", State.ROLLBACK: "ROLLBACK_MESSAGE", State.UNKNOWN: "UNKNOW"}

Check = Callable[[ReceivedMessage], State | Awaitable[State]]
Execute = Callable[[str], State | Awaitable[State]]
Trace = Callable[[TraceRecord], None]


@dataclass(frozen=True, slots=True)
class Half:
    """A half message that was sent. `message_id` is that of the message that consumers may get."""

    topic: str
    result: SendResult

    @property
    def message_id(self) -> str:
        return self.result.message_id

    @property
    def is_safe(self) -> bool:
        """Returns whether the broker has it as surely as it was told to; otherwise it can only be rolled back."""
        return self.result.status is SendStatus.SEND_OK


@dataclass(frozen=True, slots=True)
class TransactionResult:
    half: Half
    state: State


class Transactions:
    """Sends transactions by `producer`, and answers the brokers' checks of its group from now on.

    `check` may be a plain function, which runs in a thread, or async. One per group and client.
    """

    def __init__(self, producer: Producer, check: Check, *, trace: Trace | None = None) -> None:
        """Raises ClientError when the client answers checks of this group already."""
        self._producer = producer
        self._check = check
        self._trace = trace
        self._turns = asyncio.Semaphore(CHECKS_AT_ONCE_MAX)
        _ChecksByGroup.of(producer.instance).add(producer.group, self._answer_check)

    async def send(
        self, topic: str, body: bytes, execute: Execute, **options: Unpack[MessageOptions]
    ) -> TransactionResult:
        """Sends a half, calls `execute(message_id)` and tells the broker what it returned.

        An error of `execute` counts as UNKNOWN: the broker will ask. A half that the broker may lose is rolled back and
        `execute` not called. A plain function blocks the event loop. Raises as `send_half`.
        """
        half = await self.send_half(topic, body, **options)
        if not half.is_safe:
            await self.end(half, State.ROLLBACK)
            return TransactionResult(half, State.ROLLBACK)
        state, remark = await _state_of(lambda: execute(half.message_id))
        await self.end(half, state, remark)
        return TransactionResult(half, state)

    async def send_half(self, topic: str, body: bytes, **options: Unpack[MessageOptions]) -> Half:
        """Sends a message that no consumer gets before its transaction is committed.

        Raises as `Producer.send`, and MessageError for one that is delayed: brokers forget the delay of a half.
        """
        return Half(topic, await self._producer.send_half(topic, body, **options))

    async def end(self, half: Half, state: State, remark: str | None = None) -> None:
        """Tells the broker how the transaction ended. Oneway: when it does not hear that, it asks.

        Raises no ClientError for the same reason.
        """
        result = half.result
        _, commit_log_offset = decode_offset_message_id(result.offset_message_id)
        header = EndTransactionHeader(
            topic=half.topic,
            producer_group=self._producer.group,
            tran_state_table_offset=result.queue_offset,
            commit_log_offset=commit_log_offset,
            commit_or_rollback=state,
            from_transaction_check=False,
            msg_id=result.message_id,
            transaction_id=result.transaction_id or result.message_id,
            bname=result.queue.broker_name,
        )
        try:
            await self._producer.tell_broker(result.queue.broker_name, _end_request(header, remark))
        except ClientError as error:
            logger.warning("the end of transaction %s is lost, the broker will ask: %s", result.message_id, error)
        self._record(header, state, {})

    async def _answer_check(self, connection: Connection, header: CheckTransactionStateHeader, half: Command) -> None:
        """Answers on the connection that the broker asked on."""
        stored = decode_message(half.body)
        message = received(stored, MessageQueue(stored.topic, header.bname or "", stored.queue_id))
        async with self._turns:
            state, remark = await _state_of(lambda: _in_thread_or_loop(self._check, message))
        end = EndTransactionHeader(
            topic=header.topic,
            producer_group=self._producer.group,
            tran_state_table_offset=header.tran_state_table_offset,
            commit_log_offset=header.commit_log_offset,
            commit_or_rollback=state,
            from_transaction_check=True,
            msg_id=message.id,
            transaction_id=header.transaction_id,
            bname=header.bname,
        )
        if connection.is_open:
            connection.requester.send_oneway(_end_request(end, remark))
        self._record(end, state, dict(message.properties) | {"topic": message.topic})

    def _record(self, end: EndTransactionHeader, state: State, message: dict[str, str]) -> None:
        if self._trace is None:
            return
        self._trace(
            TraceRecord(
                kind=END_TRANSACTION,
                timestamp_ms=time.time_ns() // 1_000_000,
                region_id=message.get(Property.MSG_REGION) or DEFAULT_REGION,
                group=self._producer.group,
                topic=message.get("topic") or end.topic,
                message_id=end.msg_id,
                tags=message.get(Property.TAGS),
                keys=message.get(Property.KEYS),
                store_host=self._producer.instance.routes.master_address(end.bname or ""),
                message_type=MessageType.COMMITTED,
                transaction_id=end.transaction_id,
                transaction_state=_JAVA_NAMES[state],
                is_from_check=bool(end.from_transaction_check),
            )
        )


class _ChecksByGroup:
    """The handler of CHECK_TRANSACTION_STATE of one client: gives a check to the group that sent the half."""

    _Answer = Callable[[Connection, CheckTransactionStateHeader, Command], Awaitable[None]]

    def __init__(self) -> None:
        self._answers: dict[str, _ChecksByGroup._Answer] = {}

    @classmethod
    def of(cls, instance: ClientInstance) -> _ChecksByGroup:
        """Returns the handler that the client has, or gives it one."""
        handlers = instance.connections.on_request
        checks = handlers.get(RequestCode.CHECK_TRANSACTION_STATE)
        if not isinstance(checks, _ChecksByGroup):
            checks = handlers[RequestCode.CHECK_TRANSACTION_STATE] = cls()
        return checks

    def add(self, group: str, answer: _Answer) -> None:
        if group in self._answers:
            raise ClientError(f"this client answers the transaction checks of group {group!r} already")
        self._answers[group] = answer

    async def __call__(self, connection: Connection, request: Command) -> None:
        try:
            header = read_header(CheckTransactionStateHeader, request.ext_fields)
            group = decode_message(request.body).properties.get(Property.PGROUP, "")
        except WireError as error:
            logger.warning("%s: a transaction check cannot be read: %s", connection.peer, error)
            return
        answer = self._answers.get(group)
        if answer is None:
            logger.warning("%s: a transaction check for group %r, which sends none here", connection.peer, group)
            return
        await answer(connection, header, request)


async def _state_of(ask: Callable[[], State | Awaitable[State]]) -> tuple[State, str | None]:
    """Returns what a listener said, or UNKNOWN with the reason: its error, or that it said nothing of that kind."""
    try:
        answer = ask()
        said = await answer if inspect.isawaitable(answer) else answer
        if said in tuple(State):
            return State(said), None
    except Exception as error:
        logger.exception("a transaction listener failed: the state is unknown")
        return State.UNKNOWN, repr(error)[:REMARK_CHARS_MAX]
    logger.error("a transaction listener returned %r: return COMMIT, ROLLBACK or UNKNOWN", said)
    return State.UNKNOWN, f"the listener returned {said!r}"[:REMARK_CHARS_MAX]


async def _in_thread_or_loop(check: Check, message: ReceivedMessage) -> State:
    if inspect.iscoroutinefunction(check):
        return State(await check(message))
    said = await asyncio.to_thread(check, message)
    return await said if inspect.isawaitable(said) else said


def _end_request(header: EndTransactionHeader, remark: str | None) -> Command:
    return Command(code=RequestCode.END_TRANSACTION, ext_fields=write_header(header), remark=remark)
