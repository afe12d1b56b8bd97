"""A request on its way through the broker, and what handles it.

A processor is called with a request and returns the answer, or None when the answer comes later or never. It runs on
the event loop and must not block. A stage is called before the processor; it returns nothing and refuses by raising
MessageError. Neither answers a oneway request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from remoting.server_connection import ServerConnection
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError


class Request:
    """`connection`: where the request came from, and where an answer goes that comes later."""

    __slots__ = ("command", "connection")

    def __init__(self, command: Command, connection: ServerConnection) -> None:
        self.command = command
        self.connection = connection


Processor = Callable[[Request], Command | None]
Processors = Mapping[int, Processor]
Stage = Callable[[Request], None]


def answer_when_saved(request: Request) -> Callable[[MessageError | None], None]:
    """Returns a function that answers the request: SUCCESS, or the refusal that it is called with."""

    def answer(refusal: MessageError | None) -> None:
        command = request.command
        if command.is_oneway:
            return
        if refusal is None:
            request.connection.send(response(command, ResponseCode.SUCCESS))
        else:
            request.connection.send(response(command, refusal.response_code, str(refusal)))

    return answer
