"""GET_ALL_DELAY_OFFSET (45): how far the delay levels have been delivered."""

from __future__ import annotations

from broker.engine.schedule.delay import DelayedDelivery
from broker.engine.serving.requests import Request
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


class GetAllDelayOffset:
    def __init__(self, delays: DelayedDelivery) -> None:
        self._delays = delays

    def __call__(self, request: Request) -> Command:
        return response(request.command, ResponseCode.SUCCESS, body=self._delays.encoded_progress())
