"""DELETE_EXPIRED_COMMITLOG (329): a tool has segments of the log removed that are older than `fileReservedTime`,
whatever the hour of the day (RocketMQ's `AdminBrokerProcessor`).
"""

from __future__ import annotations

from broker.engine.retention.requested import RequestedRetention
from broker.engine.serving.requests import Request
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


class DeleteExpiredCommitLog:
    def __init__(self, retention: RequestedRetention) -> None:
        self._retention = retention

    def __call__(self, request: Request) -> Command:
        """Answers when the removal has begun, as RocketMQ does."""
        self._retention.remove_expired()
        return response(request.command, ResponseCode.SUCCESS)
