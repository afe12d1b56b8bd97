"""Sends one outgoing message until a broker has stored it: up to three attempts within its total time.

Tried again are connection errors, time-outs and the retriable response codes, each time on another queue, on another
broker where there is one. A message for one queue is tried there, once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from remoting.client.errors import BrokerRefused, NotConnected, NotWritable, RequestTimedOut, SendFailed
from remoting.client.instance import ClientInstance
from remoting.client.latency import BrokerLatencies
from remoting.client.outgoing import OutgoingMessage
from remoting.client.queue_picker import QueuePicker
from remoting.client.send_result import SendResult, SendStatus
from remoting.client.send_trace import Sending, send_records
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.trace import TraceRecord
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import HeaderError
from remoting.wire.headers.send import SendMessageHeaderV2, SendMessageResponseHeader
from remoting.wire.headers.typed import read_header, write_header

# `retryResponseCodes` of the 5.x producer.
RETRIABLE_CODES = frozenset(
    {
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    }
)
_STORED = frozenset(int(status) for status in SendStatus)
# Pauses before the same broker is tried again: it may be restarting. RocketMQ's client does not pause.
PAUSES_S = (0.1, 0.5)

QueueSelector = Callable[[Sequence[MessageQueue]], MessageQueue]


@dataclass(frozen=True, slots=True)
class Deadline:
    """When all attempts of a send must have ended: `timeout_ms` after it began; `at_s` in the event loop's time."""

    timeout_ms: int
    at_s: float

    @classmethod
    def after(cls, timeout_ms: int) -> Self:
        return cls(timeout_ms, asyncio.get_running_loop().time() + timeout_ms / 1000)

    def left_ms(self) -> int:
        return round((self.at_s - asyncio.get_running_loop().time()) * 1000)


class RetryingSender:
    """The attempts of one producer group; see `Producer` for the arguments."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        *,
        retries: int,
        pauses_s: Sequence[float],
        latencies: BrokerLatencies | None,
        trace: Callable[[TraceRecord], None] | None,
    ) -> None:
        self._instance = instance
        self._group = group
        self._retries = retries
        self._pauses_s = pauses_s
        self._latencies = latencies
        self._trace = trace
        self._picker = QueuePicker()

    async def send(
        self, message: OutgoingMessage, queue: MessageQueue | None, selector: QueueSelector | None, deadline: Deadline
    ) -> SendResult:
        """Returns when a broker has stored the message. Raises RouteNotFound, BrokerRefused, SendFailed."""
        if selector is not None:
            queue = selector(await self.queues(message.topic, deadline))
        attempts: list[Exception] = []
        failed_broker: str | None = None
        while len(attempts) <= (self._retries if queue is None else 0) and deadline.left_ms() > 0:
            queues = await self.queues(message.topic, deadline)  # also finds the address of a chosen queue's broker
            target = queue or self._pick(message.topic, queues, failed_broker)
            if target.broker_name == failed_broker:
                await self._pause(attempts, deadline)
            try:
                return await self._send_once(message, target, max(1, deadline.left_ms()))
            except (NotConnected, RequestTimedOut, BrokerRefused) as error:
                if isinstance(error, BrokerRefused) and error.code not in RETRIABLE_CODES:
                    raise
                attempts.append(error)
                failed_broker = target.broker_name
                self._note_failure(failed_broker, error)
                self._instance.routes.expire(message.topic)
        raise SendFailed(message.topic, attempts) from (attempts[-1] if attempts else None)

    async def send_oneway(self, message: OutgoingMessage, queue: MessageQueue | None, deadline: Deadline) -> None:
        """Writes the message to the socket, once, without waiting for an answer. Raises as `send`."""
        queues = await self.queues(message.topic, deadline)
        target = queue or self._pick(message.topic, queues, None)
        request = _send_request(message, target, self._group)
        await self._instance.connections.oneway(self.address(target.broker_name), request, deadline.timeout_ms)

    async def queues(self, topic: str, deadline: Deadline) -> tuple[MessageQueue, ...]:
        """Returns the queues that can be written, at least one. Raises SendFailed, RouteNotFound."""
        try:
            async with asyncio.timeout_at(deadline.at_s):
                queues = await self._instance.routes.publish_queues(topic)
        except TimeoutError as error:
            name_servers = str(self._instance.name_servers)
            timed_out = RequestTimedOut(name_servers, RequestCode.GET_ROUTEINFO_BY_TOPIC, deadline.timeout_ms)
            raise SendFailed(topic, [timed_out]) from error
        if not queues:
            raise SendFailed(topic, [NotWritable(topic)])
        return queues

    def address(self, broker_name: str) -> str:
        """Returns that of the broker's master. Raises NotConnected."""
        address = self._instance.routes.master_address(broker_name)
        if address is None:
            raise NotConnected(broker_name, "no route names a master of this broker")
        return address

    def _pick(self, topic: str, queues: Sequence[MessageQueue], failed_broker: str | None) -> MessageQueue:
        if self._latencies is not None:
            queues = self._latencies.choose(queues, failed_broker, asyncio.get_running_loop().time())
        return self._picker.pick(topic, queues, failed_broker)

    async def _pause(self, attempts: Sequence[Exception], deadline: Deadline) -> None:
        pause_s = self._pauses_s[min(len(attempts), len(self._pauses_s)) - 1]
        await asyncio.sleep(min(pause_s, max(0, deadline.left_ms()) / 2000))

    def _note_failure(self, broker: str, error: Exception) -> None:
        if self._latencies is not None:
            now_s = asyncio.get_running_loop().time()
            self._latencies.failed(broker, now_s, is_refusal=isinstance(error, BrokerRefused))

    async def _send_once(self, message: OutgoingMessage, queue: MessageQueue, timeout_ms: int) -> SendResult:
        address = self.address(queue.broker_name)
        request = _send_request(message, queue, self._group)
        began_ms = _now_ms()
        answer = await self._instance.connections.request(address, request, timeout_ms)
        ended_ms = _now_ms()
        if answer.code not in _STORED:
            subject = f"topic {message.topic!r}"
            raise BrokerRefused(address, request.code, answer.code, answer.remark, subject)
        result = _read_result(message, queue, answer)
        if self._latencies is not None:
            now_s = asyncio.get_running_loop().time()
            self._latencies.answered(queue.broker_name, (ended_ms - began_ms) / 1000, now_s)
        if self._trace is not None:
            sending = Sending(self._group, address, began_ms, ended_ms, answer.ext_fields)
            for record in send_records(message, result, sending):
                self._trace(record)
        return result


def _send_request(message: OutgoingMessage, queue: MessageQueue, group: str) -> Command:
    header = SendMessageHeaderV2(
        producer_group=group,
        topic=message.topic,
        queue_id=queue.queue_id,
        sys_flag=message.sys_flag,
        born_timestamp=_now_ms(),
        flag=message.flag,
        properties=message.properties_text,
        reconsume_times=message.reconsume_times or 0,
        unit_mode=False,
        max_reconsume_times=message.max_reconsume_times,
        batch=message.is_batch,
        bname=queue.broker_name,
    )
    code = RequestCode.SEND_BATCH_MESSAGE if message.is_batch else RequestCode.SEND_MESSAGE_V2
    if message.is_reply:
        code = RequestCode.SEND_REPLY_MESSAGE_V2
    return Command(code=code, ext_fields=write_header(header), body=message.body)


def _read_result(message: OutgoingMessage, queue: MessageQueue, answer: Command) -> SendResult:
    try:
        header = read_header(SendMessageResponseHeader, answer.ext_fields)
    except HeaderError as error:  # stored at an unknown place: sending it again would store it twice
        raise SendFailed(message.topic, [error]) from error
    return SendResult(
        message.message_id,
        header.msg_id,
        MessageQueue(message.topic, queue.broker_name, header.queue_id),
        header.queue_offset,
        SendStatus(answer.code),
        header.recall_handle,
        header.transaction_id,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
