"""GET_ALL_CONSUMER_OFFSET (43): the committed offsets of all groups."""

from __future__ import annotations

from broker.engine.groups.offsets import Offsets
from broker.engine.serving.requests import Request
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


class GetAllConsumerOffset:
    def __init__(self, offsets: Offsets) -> None:
        self._offsets = offsets

    def __call__(self, request: Request) -> Command:
        return response(request.command, ResponseCode.SUCCESS, body=self._offsets.encode())
