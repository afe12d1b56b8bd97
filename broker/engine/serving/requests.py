"""One request on its way to its processor, and the table that sends it there (RocketMQ's `NettyRemotingAbstract`).

A processor is called with a request and returns the answer, or None when the answer comes later or never. It runs on
the event loop and must not block. What it raises becomes the answer: a WireError with its own code, anything else
SYSTEM_ERROR with its traceback in the log. A oneway request is never answered.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping

from remoting.connection import Handler
from remoting.server_connection import ServerConnection
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError, WireError

logger = logging.getLogger(__name__)

# Different complaints about one connection that are worth a line each.
COMPLAINTS_MAX = 16


class Request:
    """`connection` is where it came from, and where an answer goes that comes later."""

    __slots__ = ("command", "connection")

    def __init__(self, command: Command, connection: ServerConnection) -> None:
        self.command = command
        self.connection = connection


Processor = Callable[[Request], Command | None]


class RequestTable(Handler[ServerConnection]):
    """Request code → processor, filled once before anybody is let in. `on_lost` hear of connections that are gone."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._processors: dict[int, Processor] = {}
        self.on_lost: list[Callable[[ServerConnection], None]] = []
        # Called when all requests of one read were handed out: what they left to be done together is done then.
        self.after_read: list[Callable[[], None]] = []
        # Called before a processor is; raises MessageError for what shall not be handled.
        self.check: Callable[[Command, ServerConnection], None] = _no_check

    def fill(self, processors: Mapping[int, Processor]) -> None:
        self._processors.update(processors)

    @property
    def codes(self) -> frozenset[int]:
        return frozenset(self._processors)

    def connected(self, connection: ServerConnection) -> None:
        logger.debug("%s: %s connected", self._name, connection.peer)

    def requests_received(self, connection: ServerConnection, requests: list[Command]) -> None:
        for index, command in enumerate(requests):
            if index and connection.is_turn_over:
                connection.put_back(requests[index:])
                break
            answer = self._answer(Request(command, connection))
            if answer is not None and not command.is_oneway:
                connection.send(answer)
        for finish in self.after_read:
            finish()

    def disconnected(self, connection: ServerConnection, error: Exception | None) -> None:
        logger.debug("%s: %s disconnected%s", self._name, connection.peer, f": {error}" if error else "")
        for forget in self.on_lost:
            forget(connection)

    def _answer(self, request: Request) -> Command | None:
        command = request.command
        processor = self._processors.get(command.code)
        if processor is None:
            level = _warning_once(request, "unknown")
            logger.log(level, "%s: %s asked for unknown code %d", self._name, request.connection.peer, command.code)
            text = f" request type {command.code} not supported"
            return response(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, text)
        try:
            self.check(command, request.connection)
            return processor(request)
        except MessageError as error:
            # A rule said no; a client that asks again and again would fill the log.
            logger.debug("%s: %s was refused %s: %s", self._name, request.connection.peer, command, error)
            return response(command, error.response_code, str(error))
        except WireError as error:
            level, peer = _warning_once(request, "unreadable"), request.connection.peer
            logger.log(level, "%s: %s sent what cannot be read, %s: %s", self._name, peer, command, error)
            return response(command, error.response_code, str(error))
        except Exception as error:
            logger.exception("%s: %s from %s failed", self._name, command, request.connection.peer)
            text = "".join(traceback.format_exception_only(error)).strip()
            return response(command, ResponseCode.SYSTEM_ERROR, text)


def _no_check(command: Command, connection: ServerConnection) -> None:
    """Everything is handled."""


def _warning_once(request: Request, complaint: str) -> int:
    """The level to log at: a warning for what is new about this connection, or one peer would fill the log."""
    told: set[tuple[str, int]] = request.connection.context.setdefault("complaints", set())
    key = (complaint, request.command.code)
    if key in told or len(told) >= COMPLAINTS_MAX:
        return logging.DEBUG
    told.add(key)
    return logging.WARNING
