"""GET_EARLIEST_MSG_STORETIME (32): when a queue's first message was stored."""

from __future__ import annotations

from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.offsets import (
    QueueHeader,
    TimestampResponseHeader,
)
from remoting.wire.headers.typed import read_header, write_header


class GetEarliestMsgStoretime:
    """-1 for an empty queue."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def __call__(self, request: Request) -> Command:
        header = read_header(QueueHeader, request.command.ext_fields)
        first = self._store.min_offset(header.topic, header.queue_id)
        timestamp = self._store.store_timestamp_at(header.topic, header.queue_id, first)
        answer = TimestampResponseHeader(timestamp=timestamp)
        return response(request.command, ResponseCode.SUCCESS, ext_fields=write_header(answer))
