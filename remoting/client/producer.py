"""Sends messages (RocketMQ's `DefaultMQProducer`).

How often and where a send is tried is `retrying_sender.py`'s. A message whose send failed may have been stored; one
that was tried again may be stored twice. Its `message_id` is the same each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

from remoting.client.batches import batches, split_result
from remoting.client.errors import (
    BrokerRefused,
    ClientError,
    NoReply,
    SendFailed,
)
from remoting.client.instance import ClientInstance, local_address
from remoting.client.latency import BrokerLatencies
from remoting.client.outgoing import (
    DEFAULT_COMPRESSION,
    Compression,
    Message,
    MessageOptions,
    OutgoingMessage,
    check_batch_topic,
    check_body,
    check_send_topic,
    encode_checked,
    is_delayed,
    prepare_message,
)
from remoting.client.queue_picker import queue_by_key
from remoting.client.received_message import ReceivedMessage
from remoting.client.replies import PendingReplies, reply_to, request_properties
from remoting.client.retrying_sender import PAUSES_S, Deadline, QueueSelector, RetryingSender
from remoting.client.send_result import SendResult
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.trace import TraceRecord
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import MessageError
from remoting.wire.headers.recall import RecallMessageHeader, RecallMessageResponseHeader
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.message_id import UniqueKeyFactory
from remoting.wire.names import check_group
from remoting.wire.properties import Property
from remoting.wire.recall_handle import read_recall_handle
from remoting.wire.stored_message import TRANSACTION_PREPARED

# `sendMsgTimeout`: all attempts together.
SEND_TIMEOUT_MS = 3000
# `retryTimesWhenSendFailed`: attempts after the first.
RETRIES = 2
# Legal names need to be checked once only; the memory of them is bounded.
_CHECKED_TOPICS_MAX = 10_000


class Producer:
    """One producer group on one event loop. `await start()` first, `await close()` at the end.

    `instance`: share another's connections; it is then started and closed by its owner.
    """

    def __init__(
        self,
        namesrv: str | Sequence[str],
        group: str,
        *,
        instance: ClientInstance | None = None,
        timeout_ms: int = SEND_TIMEOUT_MS,
        retries: int = RETRIES,
        compression: Compression = DEFAULT_COMPRESSION,
        pauses_s: Sequence[float] = PAUSES_S,
        avoids_slow_brokers: bool = False,
        trace: Callable[[TraceRecord], None] | None = None,
    ) -> None:
        """Raises MessageError for an illegal group name, ValueError without a name server.

        `avoids_slow_brokers`: see `BrokerLatencies` (`sendLatencyFaultEnable`). `trace` gets a record of each message
        that was stored (`TraceDispatcher.record`).
        """
        check_group(group)
        self.group = group
        self.timeout_ms = timeout_ms
        self._compression = compression
        self._instance = instance or ClientInstance(namesrv)
        self._owns_instance = instance is None
        self._sender = RetryingSender(
            self._instance,
            group,
            retries=retries,
            pauses_s=pauses_s,
            latencies=BrokerLatencies() if avoids_slow_brokers else None,
            trace=trace,
        )
        self._keys = UniqueKeyFactory(local_address())
        self._checked_topics: set[str] = set()
        self._is_running = False
        self._in_flight = 0
        self._all_ended = asyncio.Event()

    @property
    def instance(self) -> ClientInstance:
        """Returns the client whose connections it uses."""
        return self._instance

    async def start(self) -> None:
        """Registers the group with its brokers' heartbeats; starts the instance where it is the producer's own."""
        self._is_running = True
        self._instance.heartbeats.add_producer(self.group)
        if self._owns_instance:
            self._instance.start()

    async def close(self) -> None:
        """Refuses further sends, waits for those in flight until their time-outs, and unregisters from the brokers."""
        self._is_running = False
        try:
            if self._in_flight:
                self._all_ended.clear()
                await self._all_ended.wait()
            await self._instance.heartbeats.remove_producer(self.group)
        finally:
            if self._owns_instance:
                await self._instance.close()

    async def send(
        self,
        topic: str,
        body: bytes,
        *,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        order_key: str | None = None,
        message_id: str | None = None,
        timeout_ms: int | None = None,
        **options: Unpack[MessageOptions],
    ) -> SendResult:
        """Sends a message and returns when a broker has stored it; `options` are the other fields of `Message`.

        With `queue`, or the one that `selector` returns of all queues of the topic, that queue only is tried, once;
        with `order_key` the queue of all messages with that key. `message_id`: of an earlier try of the same message,
        so that consumers know it again.

        Raises MessageError before anything is sent; RouteNotFound; BrokerRefused for a code that no retry can cure;
        else SendFailed.
        """
        if order_key is not None:
            selector = partial(queue_by_key, order_key)
        message = self._outgoing(topic, Message(body, **options), message_id)
        return await self._deliver(message, queue, selector, timeout_ms)

    async def request(
        self,
        topic: str,
        body: bytes,
        *,
        order_key: str | None = None,
        timeout_ms: int | None = None,
        **options: Unpack[MessageOptions],
    ) -> ReceivedMessage:
        """Sends a request and returns the reply of whoever consumed it; `timeout_ms` covers both.

        Raises as `send`, and NoReply.
        """
        timeout_ms = timeout_ms or self.timeout_ms
        selector = None if order_key is None else partial(queue_by_key, order_key)
        with PendingReplies.of(self._instance).expected() as (correlation_id, reply):
            more = request_properties(correlation_id, self._instance.client_id, timeout_ms)
            message = self._outgoing(topic, Message(body, **options), more=more)
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    await self._be_known(topic, timeout_ms)
                    await self._deliver(message, None, selector, timeout_ms)
                    return await reply
            except TimeoutError as error:
                if isinstance(error, ClientError):
                    raise
                raise NoReply(topic, message.message_id, timeout_ms) from error

    async def reply(self, request: Mapping[str, str], body: bytes, **options: Unpack[MessageOptions]) -> SendResult:
        """Sends the reply to a consumed message, given by its properties. Raises as `send`.

        MessageError says that the message was no request; SendFailed, with the broker's words, that the one who asked
        is gone.
        """
        topic, properties = reply_to(request)
        message = replace(self._outgoing(topic, Message(body, **options), more=properties), is_reply=True)
        return await self._deliver(message, None, None, None)

    async def _be_known(self, topic: str, timeout_ms: int) -> None:
        """Registers at every broker that the topic's replies may come by."""
        await self._sender.queues(topic, Deadline.after(timeout_ms))
        addresses = self._instance.routes.broker_addresses(with_slaves=False)
        if not all(self._instance.connections.is_open(address) for address in addresses):
            await self._instance.heartbeats.send_now()

    async def send_half(self, topic: str, body: bytes, **options: Unpack[MessageOptions]) -> SendResult:
        """Sends the half message of a transaction (`remoting/client/transactions.py`). Raises as `send`."""
        whole = Message(body, **options)
        if is_delayed(whole):
            raise MessageError("a message of a transaction cannot be delayed: brokers forget the delay of a half")
        more = {Property.TRAN_MSG: "true", Property.PGROUP: self.group}
        half = self._outgoing(topic, whole, more=more)
        half = replace(half, sys_flag=half.sys_flag | TRANSACTION_PREPARED)
        return await self._deliver(half, None, None, None)

    async def tell_broker(self, broker_name: str, request: Command) -> None:
        """Writes a oneway request to a broker's master. Raises NotConnected, RequestTimedOut."""
        self._check_running()
        address = self._sender.address(broker_name)
        await self._instance.connections.oneway(address, request, self.timeout_ms)

    async def send_oneway(
        self, topic: str, body: bytes, *, queue: MessageQueue | None = None, **options: Unpack[MessageOptions]
    ) -> str:
        """Writes a message to the socket without waiting for an answer, once; returns its message id.

        Raises as `send`, but no BrokerRefused.
        """
        message = self._outgoing(topic, Message(body, **options))
        self._check_running()
        await self._sender.send_oneway(message, queue, Deadline.after(self.timeout_ms))
        return message.message_id

    async def send_batch(
        self,
        topic: str,
        messages: Iterable[Message],
        *,
        queue: MessageQueue | None = None,
        timeout_ms: int | None = None,
    ) -> list[SendResult]:
        """Sends many messages, as many in one request as fit into 4 MiB; the messages of one request share a queue.

        Returns one result per message, in order. Raises as `send`; SendFailed has in `sent` the results of what was
        stored before the part that failed. No message may be delayed.
        """
        check_batch_topic(topic)
        results: list[SendResult] = []
        for part in batches(topic, list(messages), self._keys.next):
            try:
                result = await self._deliver(part, queue, None, timeout_ms)
            except ClientError as error:
                if results:
                    raise SendFailed(topic, [error], results) from error
                raise
            results += split_result(result)
        return results

    async def forward(
        self,
        topic: str,
        body: bytes,
        properties: Mapping[str, str],
        *,
        flag: int = 0,
        sys_flag: int = 0,
        reconsume_times: int | None = None,
        max_reconsume_times: int | None = None,
        queue: MessageQueue | None = None,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Sends a message that exists already: reserved properties are kept, and `body` as it is (see `sys_flag`).

        For programs that move messages: a consumer's own retry, a replay. A message without an id gets one. Raises as
        `send`.
        """
        check_send_topic(topic)
        check_body(body)
        complete = dict(properties)
        message_id = complete.setdefault(Property.UNIQ_KEY, self._keys.next())
        message = OutgoingMessage(
            topic,
            message_id,
            body,
            encode_checked(complete),
            flag,
            sys_flag,
            reconsume_times=reconsume_times,
            max_reconsume_times=max_reconsume_times,
        )
        return await self._deliver(message, queue, None, timeout_ms)

    async def recall(self, topic: str, recall_handle: str) -> str:
        """Calls a timer message back before its time (`SendResult.recall_handle`); returns its message id.

        Raises MessageError for a handle that is none, BrokerRefused when the broker doesn't know it any more or at all.
        """
        self._check_running()
        handle = read_recall_handle(recall_handle)
        await self._instance.routes.get(topic)
        address = self._sender.address(handle.broker_name)
        header = RecallMessageHeader(producer_group=self.group, topic=topic, recall_handle=recall_handle)
        request = Command(code=RequestCode.RECALL_MESSAGE, ext_fields=write_header(header))
        answer = await self._instance.connections.request(address, request, self.timeout_ms)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerRefused(address, request.code, answer.code, answer.remark, f"topic {topic!r}")
        return read_header(RecallMessageResponseHeader, answer.ext_fields).msg_id

    async def publish_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the queues that a selector may choose from. Raises RouteNotFound, NameServersUnreachable."""
        return await self._instance.routes.publish_queues(topic)

    async def _deliver(
        self,
        message: OutgoingMessage,
        queue: MessageQueue | None,
        selector: QueueSelector | None,
        timeout_ms: int | None,
    ) -> SendResult:
        self._check_running()
        self._in_flight += 1
        try:
            return await self._sender.send(message, queue, selector, Deadline.after(timeout_ms or self.timeout_ms))
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._all_ended.set()

    def _check_running(self) -> None:
        if not self._is_running:
            raise ClientError(f"producer {self.group!r} is not running: call start() first, and nothing after close()")

    def _outgoing(
        self, topic: str, message: Message, message_id: str | None = None, more: Mapping[str, str] | None = None
    ) -> OutgoingMessage:
        if topic not in self._checked_topics:
            check_send_topic(topic)
            if len(self._checked_topics) >= _CHECKED_TOPICS_MAX:
                self._checked_topics.clear()
            self._checked_topics.add(topic)
        message_id = message_id or self._keys.next()
        return prepare_message(topic, message, message_id, compression=self._compression, more=more)
