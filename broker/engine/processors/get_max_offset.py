"""GET_MAX_OFFSET (30), GET_MIN_OFFSET (31): where a queue ends and begins."""

from __future__ import annotations

from collections.abc import Callable

from broker.engine.serving.requests import Request
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.offsets import OffsetResponseHeader, QueueHeader
from remoting.wire.headers.typed import read_header, write_header


class GetQueueEnd:
    """Answers with `offset_of(topic, queue_id)`, the store's max or min offset: 0 for an unknown queue."""

    def __init__(self, offset_of: Callable[[str, int], int]) -> None:
        self._offset_of = offset_of

    def __call__(self, request: Request) -> Command:
        header = read_header(QueueHeader, request.command.ext_fields)
        answer = OffsetResponseHeader(offset=self._offset_of(header.topic, header.queue_id))
        return response(request.command, ResponseCode.SUCCESS, ext_fields=write_header(answer))
