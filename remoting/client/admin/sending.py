"""Sends one message to one queue of one broker, for tools that move messages.

A producer looks for another queue when a send fails; here the caller has written down where a message goes before it is
sent, and must learn exactly what became of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from remoting.client.admin.requests import Requests
from remoting.client.outgoing import check_body, encode_checked
from remoting.client.send_result import SendStatus
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import RequestCode
from remoting.wire.headers.send import SendMessageHeaderV2, SendMessageResponseHeader
from remoting.wire.headers.typed import read_header

_STORED = tuple(int(status) for status in SendStatus)


@dataclass(frozen=True, slots=True)
class StoredAt:
    """Where the broker stored a message. `status`: how safe it was when the answer was written."""

    offset_message_id: str
    queue_id: int
    queue_offset: int
    status: SendStatus


class Sending:
    """`group` is the producer group in whose name it is sent."""

    def __init__(self, requests: Requests, group: str) -> None:
        self._requests = requests
        self._group = group

    async def send(
        self, address: str, queue: MessageQueue, body: bytes, properties: Mapping[str, str], *, timeout_ms: int
    ) -> StoredAt:
        """Sends it once (310), as attempt 0. Raises MessageError before anything is sent, else as `Requests.ask`."""
        check_body(body)
        header = SendMessageHeaderV2(
            producer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            sys_flag=0,
            born_timestamp=time.time_ns() // 1_000_000,
            flag=0,
            properties=encode_checked(properties),
            reconsume_times=0,
            unit_mode=False,
            batch=False,
            bname=queue.broker_name,
        )
        answer = await self._requests.ask(
            address,
            RequestCode.SEND_MESSAGE_V2,
            header,
            body=body,
            about=f"topic {queue.topic!r}",
            timeout_ms=timeout_ms,
            accepted=_STORED,
        )
        stored = read_header(SendMessageResponseHeader, answer.ext_fields)
        return StoredAt(stored.msg_id, stored.queue_id, stored.queue_offset, SendStatus(answer.code))
