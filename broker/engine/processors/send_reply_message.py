"""SEND_REPLY_MESSAGE (324), SEND_REPLY_MESSAGE_V2 (325): RocketMQ's `ReplyMessageProcessor`.

A reply's property REPLY_TO_CLIENT names the producer that sent the request message. The reply is pushed to that client
(326), which finds its request by the CORRELATION_ID, and stored in the cluster's reply topic. The answer says whether
the push succeeded; the reply is stored either way, so that no reply is lost without a trace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.engine.config import BrokerConfig
from broker.engine.groups.members import Members
from broker.engine.processors.send_message import REGION
from broker.engine.sending.accepting import Accepting
from broker.engine.sending.send_target import SendTarget
from broker.engine.serving.requests import Request
from broker.engine.store.values import Appended, MessageDraft
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.replies import ReplyMessageHeader
from remoting.wire.headers.send import SendMessageHeader, SendMessageHeaderV2
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.message_id import offset_message_id
from remoting.wire.properties import Property, decode_properties, encode_properties
from remoting.wire.tags import tags_code

# How long the requesting client has to acknowledge the reply; RocketMQ's `Broker2Client.callClient` waits as long.
PUSH_TIMEOUT_MS = 10_000
# Replies at most that wait for their requesting clients, and bytes of their bodies: a limit of memory.
PUSHES_MAX = 10_000
PUSH_BYTES_MAX = 64 * 1024 * 1024


class SendReplyMessage:
    """Processor of replies: stores them and pushes them to the requesting clients."""

    def __init__(
        self,
        *,
        target: SendTarget,
        members: Members,
        accepting: Accepting,
        config: BrokerConfig,
        clock: Callable[[], int],
    ) -> None:
        """`clock`: ms since the epoch."""
        self._target = target
        self._members = members
        self._accepting = accepting
        self._config = config
        self._clock = clock
        self._pushes: set[asyncio.Task[None]] = set()
        self._push_bytes = 0

    def __call__(self, request: Request) -> None:
        """Stores and pushes the reply; the answer is sent when the client acknowledged it and it is flushed.

        Raises WireError with the code to answer.
        """
        command = request.command
        header: SendMessageHeader
        if command.code == RequestCode.SEND_REPLY_MESSAGE:
            header = read_header(SendMessageHeader, command.ext_fields)
        else:
            header = read_header(SendMessageHeaderV2, command.ext_fields)
        self._target.resolve(header)
        if len(self._pushes) >= PUSHES_MAX or self._push_bytes >= PUSH_BYTES_MAX:
            raise MessageError(
                f"{len(self._pushes)} replies of {self._push_bytes} bytes wait for their requesting clients;"
                " send this one later",
                ResponseCode.SYSTEM_BUSY,
            )
        properties = decode_properties(header.properties or "")
        properties |= {Property.MSG_REGION: REGION, Property.TRACE_ON: "true"}
        self._accepting.check_size(len(command.body), header.properties or "")
        stored = self._store(request, header, properties)
        push = asyncio.ensure_future(self._push_and_answer(request, header, properties, stored))
        self._pushes.add(push)
        self._push_bytes += len(command.body)
        push.add_done_callback(lambda push: self._forget(push, len(command.body)))

    def _forget(self, push: asyncio.Task[None], body_bytes: int) -> None:
        self._pushes.discard(push)
        self._push_bytes -= body_bytes

    async def _push_and_answer(
        self,
        request: Request,
        header: SendMessageHeader,
        properties: dict[str, str],
        stored: asyncio.Future[Appended | None],
    ) -> None:
        problem = await self._push(request, header, properties)
        place = await stored
        if request.command.is_oneway:
            return
        fields = {"MSG_REGION": REGION, "TRACE_ON": "true"}
        if problem is None or place is not None:
            fields |= {
                "msgId": offset_message_id(self._config.store_host, place.commit_log_offset) if place else "0",
                "queueId": str(header.queue_id),
                "queueOffset": str(place.queue_offset if place else 0),
            }
        code = ResponseCode.SUCCESS if problem is None else ResponseCode.SYSTEM_ERROR
        request.connection.send(response(request.command, code, problem, fields))

    # storing

    def _store(
        self, request: Request, header: SendMessageHeader, properties: dict[str, str]
    ) -> asyncio.Future[Appended | None]:
        """Stores the reply; returns a future of its place in the log, done after the flush.

        The result is None when it was not stored or not flushed in time: the answer depends on the push alone then.
        """
        stored: asyncio.Future[Appended | None] = asyncio.get_running_loop().create_future()
        if not self._config.stores_replies or not request.command.body:
            stored.set_result(None)
            return stored

        def answer(result: list[Appended] | MessageError) -> None:
            if not stored.done():
                stored.set_result(None if isinstance(result, MessageError) else result[0])

        draft = MessageDraft(
            topic=header.topic,
            queue_id=header.queue_id,
            body=bytes(request.command.body),
            born_host=request.connection.peer_host,
            store_host=self._config.store_host,
            born_timestamp_ms=header.born_timestamp,
            flag=header.flag,
            sys_flag=header.sys_flag,
            reconsume_times=header.reconsume_times or 0,
            properties_text=encode_properties(properties),
            tags_code=tags_code(properties.get(Property.TAGS)),
        )
        self._accepting.submit_batch([draft], waits=not request.command.is_oneway, answer=answer)
        return stored

    # pushing

    async def _push(self, request: Request, header: SendMessageHeader, properties: dict[str, str]) -> str | None:
        """Pushes the reply to the requesting client; returns what went wrong, None when the client acknowledged it."""
        client = properties.get(Property.REPLY_TO_CLIENT)
        if client is None:
            return f"reply message properties[{Property.REPLY_TO_CLIENT}] is null"
        connection = self._members.producer_connection(client)
        if connection is None:
            return f"push reply message fail, channel of <{client}> not found."
        if connection.is_write_paused:
            return f"push reply message fail, <{client}> does not read what is sent to it."
        try:
            answer = await connection.request(self._push_request(request, header, properties), PUSH_TIMEOUT_MS)
        except (OSError, TimeoutError) as error:
            return f"push reply message to {client} fail: {error}"
        return None if answer.code == ResponseCode.SUCCESS else f"push reply message to {client} fail: {answer.remark}"

    def _push_request(self, request: Request, header: SendMessageHeader, properties: dict[str, str]) -> Command:
        now_ms = self._clock()
        fields = ReplyMessageHeader(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=header.queue_id,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            properties=encode_properties(properties | {Property.PUSH_REPLY_TIME: str(now_ms)}),
            reconsume_times=header.reconsume_times,
            unit_mode=header.unit_mode,
            born_host=request.connection.peer,
            store_host=self._config.address,
            store_timestamp=now_ms,
        )
        body = bytes(request.command.body)
        return Command(code=RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, ext_fields=write_header(fields), body=body)
