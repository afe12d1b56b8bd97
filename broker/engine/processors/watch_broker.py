"""WATCH (29001, private): what changed since the revision that the caller knows (`broker/engine/watch.py`)."""

from __future__ import annotations

from broker.engine.requests import Request
from broker.engine.watch import Watch
from broker.engine.watch_states import WatchStates
from remoting.wire.bodies.document import write_body
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.headers.watch import WatchHeader, WatchResponseHeader


class WatchBroker:
    def __init__(self, watch: Watch, states: WatchStates) -> None:
        self._watch = watch
        self._states = states

    def __call__(self, request: Request) -> Command | None:
        """The answer, or None while there is nothing to tell."""
        header = read_header(WatchHeader, request.command.ext_fields)
        is_up_to_date = header.boot == self._watch.boot and header.since == self._watch.revision
        if is_up_to_date and header.wait_ms > 0 and self._park(request, header):
            return None
        return self._answer(request.command, header)

    def _park(self, request: Request, header: WatchHeader) -> bool:
        def tell() -> None:
            request.connection.send(self._answer(request.command, header))

        return self._watch.park(request.connection, header.wait_ms, tell)

    def _answer(self, command: Command, header: WatchHeader) -> Command:
        changes = self._watch.changes_since(header.boot, header.since)
        body = self._states.snapshot() if changes is None else self._states.of(*changes)
        answer = WatchResponseHeader(boot=self._watch.boot, revision=self._watch.revision, is_snapshot=changes is None)
        return response(command, ResponseCode.SUCCESS, ext_fields=write_header(answer), body=write_body(body))
