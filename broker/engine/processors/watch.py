"""WATCH (29001, private): what changed since the revision that the caller knows (`broker/engine/watch/watch.py`).

Of an answer of several pages, the rest is kept for its connection until the last page was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker.engine.serving.requests import Request
from broker.engine.watch.watch import Watch
from broker.engine.watch.watch_states import Pages, WatchStates
from remoting.connection import Connection
from remoting.wire.bodies.document import write_body
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.headers.watch import WatchHeader, WatchResponseHeader

# Unfinished answers kept at once, some MB each on a large broker; beyond it the oldest watcher has to begin anew.
UNFINISHED_MAX = 16


@dataclass(slots=True)
class _Answer:
    pages: Pages
    header: WatchResponseHeader


class WatchRequest:
    def __init__(self, watch: Watch, states: WatchStates, *, unfinished_max: int = UNFINISHED_MAX) -> None:
        self._watch = watch
        self._states = states
        self._unfinished_max = unfinished_max
        self._unfinished: dict[Connection, _Answer] = {}

    def __call__(self, request: Request) -> Command | None:
        """Returns the answer, or None while there is nothing new. Raises MessageError for a page that is not known."""
        header = read_header(WatchHeader, request.command.ext_fields)
        if header.page is not None:
            return self._next_page(request, header.page)
        is_up_to_date = header.boot == self._watch.boot and header.since == self._watch.revision
        if is_up_to_date and header.wait_ms > 0 and self._park(request, header):
            return None
        return self._answer(request, header)

    def connection_lost(self, connection: Connection) -> None:
        self._unfinished.pop(connection, None)

    def _park(self, request: Request, header: WatchHeader) -> bool:
        def notify() -> None:
            request.connection.send(self._answer(request, header))

        return self._watch.park(request.connection, header.wait_ms, notify)

    def _answer(self, request: Request, header: WatchHeader) -> Command:
        changes = self._watch.changes_since(header.boot, header.since)
        pages = self._states.snapshot() if changes is None else self._states.of(*changes)
        answer = WatchResponseHeader(boot=self._watch.boot, revision=self._watch.revision, is_snapshot=changes is None)
        return self._page(request, _Answer(pages, answer))

    def _next_page(self, request: Request, page: int) -> Command:
        answer = self._unfinished.pop(request.connection, None)
        if answer is None or answer.header.next_page != page:
            raise MessageError(
                f"page {page} of the watch is not known (any more): ask for everything anew", ResponseCode.SYSTEM_ERROR
            )
        return self._page(request, answer)

    def _page(self, request: Request, answer: _Answer) -> Command:
        body, has_more = answer.pages.next()
        header = answer.header
        header.next_page = header.next_page + 1 if has_more else 0
        self._unfinished.pop(request.connection, None)
        if has_more:
            self._unfinished[request.connection] = answer
            if len(self._unfinished) > self._unfinished_max:
                del self._unfinished[next(iter(self._unfinished))]
        return response(request.command, ResponseCode.SUCCESS, ext_fields=write_header(header), body=write_body(body))
