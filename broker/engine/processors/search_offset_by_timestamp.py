"""SEARCH_OFFSET_BY_TIMESTAMP (29): the queue offset of a time."""

from __future__ import annotations

from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Boundary
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.offsets import (
    OffsetResponseHeader,
    SearchOffsetHeader,
)
from remoting.wire.headers.typed import read_header, write_header


class SearchOffsetByTimestamp:
    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def __call__(self, request: Request) -> Command:
        header = read_header(SearchOffsetHeader, request.command.ext_fields)
        boundary = Boundary.UPPER if (header.boundary_type or "").upper() == "UPPER" else Boundary.LOWER
        found = self._store.offset_by_time(header.topic, header.queue_id, header.timestamp, boundary)
        return response(
            request.command, ResponseCode.SUCCESS, ext_fields=write_header(OffsetResponseHeader(offset=found))
        )
