"""CLEAN_EXPIRED_CONSUMEQUEUE (306): a tool has index files without a message removed (RocketMQ's
`AdminBrokerProcessor`).

Retention removes them with the segments that they point into, but a limited number at once. A queue whose messages are
all gone goes on at its next offset; RocketMQ forgets it, and starts it again at 0.
"""

from __future__ import annotations

from broker.engine.retention.requested import RequestedRetention
from broker.engine.serving.requests import Request
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


class CleanExpiredConsumeQueue:
    def __init__(self, retention: RequestedRetention) -> None:
        self._retention = retention

    def __call__(self, request: Request) -> Command:
        """Answers when the removal has begun, as RocketMQ does."""
        self._retention.remove_index_files()
        return response(request.command, ResponseCode.SUCCESS)
