"""The table that sends each request to its processor (RocketMQ's `NettyRemotingAbstract` and its `processorTable`).

Every request whose code is in the table goes through the same pipeline: the stages in their order, each of which may
refuse it, then the processor. What they raise becomes the answer: a WireError with its own code, anything else
SYSTEM_ERROR with its traceback in the log. An unknown code is answered REQUEST_CODE_NOT_SUPPORTED, as RocketMQ does
before its own pipeline. A oneway request is never answered.

What clients do wrong, and tracebacks of our own mistakes, are logged through `remoting.complaints`, so that a client
that repeats its request cannot fill the log.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable

from broker.engine.serving.requests import Processors, Request, Stage
from remoting.complaints import ComplaintLog
from remoting.connection import Handler
from remoting.server_connection import ServerConnection
from remoting.wire.codes import ResponseCode, request_name
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError, WireError

logger = logging.getLogger(__name__)

UNKNOWN_CODE = "unknown request code"
UNREADABLE = "unreadable request"
FAILED = "failed request"


class RequestTable(Handler[ServerConnection]):
    """Answers the requests of all connections of one server. `name` stands in its log lines."""

    def __init__(self, name: str, complaints: ComplaintLog | None = None) -> None:
        self._name = name
        self._complaints = complaints or ComplaintLog()
        self._processors: Processors = {}
        self._stages: tuple[Stage, ...] = ()
        self._after_read: tuple[Callable[[], None], ...] = ()
        self._on_connection_lost: tuple[Callable[[ServerConnection], None], ...] = ()

    def fill(
        self,
        processors: Processors,
        *,
        stages: Iterable[Stage] = (),
        after_read: Iterable[Callable[[], None]] = (),
        on_connection_lost: Iterable[Callable[[ServerConnection], None]] = (),
    ) -> None:
        """Sets processors and stages, once, before the server lets clients in.

        `stages` are called in this order with each request before its processor is. `after_read` are called when all
        requests of one read were handed out, for what they left to be done together.
        """
        self._processors = dict(processors)
        self._stages = tuple(stages)
        self._after_read = tuple(after_read)
        self._on_connection_lost = tuple(on_connection_lost)

    @property
    def processors(self) -> Processors:
        """Returns the processor of each code."""
        return self._processors

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
        for finish in self._after_read:
            finish()

    def disconnected(self, connection: ServerConnection, error: Exception | None) -> None:
        logger.debug("%s: %s disconnected%s", self._name, connection.peer, f": {error}" if error else "")
        for forget in self._on_connection_lost:
            forget(connection)

    def _answer(self, request: Request) -> Command | None:
        command = request.command
        processor = self._processors.get(command.code)
        if processor is None:
            self._complain(request, UNKNOWN_CODE, "unknown request code %d", command.code)
            text = f" request type {command.code} not supported"
            return response(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, text)
        try:
            for stage in self._stages:
                stage(request)
            return processor(request)
        except MessageError as error:
            # Refusals by rules are no warnings: a client that repeats its request would fill the log.
            logger.debug("%s: %s was refused %s: %s", self._name, request.connection.peer, command, error)
            return response(command, error.response_code, str(error))
        except WireError as error:
            self._complain(request, UNREADABLE, "cannot read %s: %s", command, error)
            return response(command, error.response_code, str(error))
        except Exception as error:
            self._complaints.exception(
                request_name(command.code),
                FAILED,
                "%s: %s from %s failed",
                self._name,
                command,
                request.connection.peer,
            )
            text = "".join(traceback.format_exception_only(error)).strip()
            return response(command, ResponseCode.SYSTEM_ERROR, text)

    def _complain(self, request: Request, kind: str, text: str, *args: object) -> None:
        connection = request.connection
        self._complaints.warn(connection.peer_host[0], kind, f"%s: %s: {text}", self._name, connection.peer, *args)
