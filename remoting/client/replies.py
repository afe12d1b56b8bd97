"""Replies that a client waits for, by correlation id (Java `RequestFutureHolder`, `ClientRemotingProcessor`).

A request is an ordinary message with a correlation id, its sender's client id and a time to live. Whoever consumes it
sends the reply to the cluster's reply topic, and the broker pushes it to the client (326). Each waiting request ends
with its reply, its time-out or its caller; a reply that nobody waits for is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from remoting.client.errors import ClientError
from remoting.client.instance import ClientInstance
from remoting.client.received_message import ReceivedMessage
from remoting.connection import Connection
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.compression import decompress
from remoting.wire.errors import MessageError, WireError
from remoting.wire.headers.replies import ReplyMessageHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.names import REPLY_TOPIC_SUFFIX
from remoting.wire.properties import Property, decode_properties

logger = logging.getLogger(__name__)

# Requests of one client that wait at once; beyond it a caller gets an error instead of memory growing.
WAITING_MAX = 65_536
REPLY_TYPE = "reply"


class PendingReplies:
    """The handler of PUSH_REPLY_MESSAGE_TO_CLIENT of one client, for all its producers."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[ReceivedMessage]] = {}

    @classmethod
    def of(cls, instance: ClientInstance) -> PendingReplies:
        """Returns the handler that the client has, or gives it one."""
        handlers = instance.connections.on_request
        replies = handlers.get(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT)
        if not isinstance(replies, PendingReplies):
            replies = handlers[RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT] = cls()
        return replies

    @contextmanager
    def expected(self) -> Iterator[tuple[str, asyncio.Future[ReceivedMessage]]]:
        """Yields a new correlation id and the future of its reply, which is waited for inside the block alone.

        Raises ClientError when WAITING_MAX requests wait.
        """
        if len(self._waiting) >= WAITING_MAX:
            raise ClientError(f"{WAITING_MAX} requests wait for their replies already: send fewer at once")
        correlation_id = str(uuid.uuid4())
        reply = self._waiting[correlation_id] = asyncio.get_running_loop().create_future()
        try:
            yield correlation_id, reply
        finally:
            del self._waiting[correlation_id]

    def __call__(self, connection: Connection, request: Command) -> Command:
        """Takes a reply; the broker hears that it came, whoever waits for it."""
        try:
            message = _read_reply(request)
        except WireError as error:
            logger.warning("%s: a reply cannot be read: %s", connection.peer, error)
            return response(request, ResponseCode.SYSTEM_ERROR, str(error))
        waiting = self._waiting.get(message.properties.get(Property.CORRELATION_ID, ""))
        if waiting is None:
            logger.info("%s: a reply that nobody waits for any more: %s", connection.peer, message.id)
        elif not waiting.done():
            waiting.set_result(message)
        return response(request, ResponseCode.SUCCESS)


def _read_reply(request: Command) -> ReceivedMessage:
    header = read_header(ReplyMessageHeader, request.ext_fields)
    properties = decode_properties(header.properties or "")
    return ReceivedMessage(
        topic=header.topic,
        body=decompress(bytes(request.body), header.sys_flag),
        properties=MappingProxyType(properties),
        id=properties.get(Property.UNIQ_KEY, ""),
        born_ms=header.born_timestamp,
        stored_ms=header.store_timestamp,
        reconsume_times=header.reconsume_times or 0,
    )


def request_properties(correlation_id: str, client_id: str, timeout_ms: int) -> dict[str, str]:
    """Returns what makes a message a request."""
    return {
        Property.CORRELATION_ID: correlation_id,
        Property.REPLY_TO_CLIENT: client_id,
        Property.TTL: str(timeout_ms),
    }


def reply_to(request: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Returns the topic of the reply to a message with these properties, and the reply's own (`MessageUtil`).

    Raises MessageError for a message that is no request.
    """
    for name in (Property.CLUSTER, Property.CORRELATION_ID, Property.REPLY_TO_CLIENT):
        if not request.get(name):
            raise MessageError(f"the message is no request, it has no property {name}: nobody waits for a reply to it")
    properties = {
        Property.MSG_TYPE: REPLY_TYPE,
        Property.CORRELATION_ID: request[Property.CORRELATION_ID],
        Property.REPLY_TO_CLIENT: request[Property.REPLY_TO_CLIENT],
        Property.TTL: request.get(Property.TTL, "0"),
    }
    return request[Property.CLUSTER] + REPLY_TOPIC_SUFFIX, properties
