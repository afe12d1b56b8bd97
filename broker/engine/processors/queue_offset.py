"""SEARCH_OFFSET_BY_TIMESTAMP (29), GET_MAX_OFFSET (30), GET_MIN_OFFSET (31), GET_EARLIEST_MSG_STORETIME (32)."""

from __future__ import annotations

from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Boundary
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.offsets import (
    OffsetResponseHeader,
    QueueHeader,
    SearchOffsetHeader,
    TimestampResponseHeader,
)
from remoting.wire.headers.typed import read_header, write_header


class QueueOffset:
    """Min and max; 0 for a queue that is unknown."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def __call__(self, request: Request) -> Command:
        command = request.command
        header = read_header(QueueHeader, command.ext_fields)
        edge = self._store.max_offset if command.code == RequestCode.GET_MAX_OFFSET else self._store.min_offset
        answer = OffsetResponseHeader(offset=edge(header.topic, header.queue_id))
        return response(command, ResponseCode.SUCCESS, ext_fields=write_header(answer))


class SearchOffset:
    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def __call__(self, request: Request) -> Command:
        header = read_header(SearchOffsetHeader, request.command.ext_fields)
        boundary = Boundary.UPPER if (header.boundary_type or "").upper() == "UPPER" else Boundary.LOWER
        found = self._store.offset_by_time(header.topic, header.queue_id, header.timestamp, boundary)
        return response(
            request.command, ResponseCode.SUCCESS, ext_fields=write_header(OffsetResponseHeader(offset=found))
        )


class EarliestStoreTime:
    """-1 for an empty queue."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def __call__(self, request: Request) -> Command:
        header = read_header(QueueHeader, request.command.ext_fields)
        first = self._store.min_offset(header.topic, header.queue_id)
        timestamp = self._store.store_timestamp_at(header.topic, header.queue_id, first)
        answer = TimestampResponseHeader(timestamp=timestamp)
        return response(request.command, ResponseCode.SUCCESS, ext_fields=write_header(answer))
