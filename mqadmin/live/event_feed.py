"""The feed of events of one web process: reads each new event once, for all scripts' sockets, and keeps the latest.

A socket has no buffer of its own: it has a position, the number of the last event that was sent to it, and takes what
follows from the feed. One whose position the feed has already forgotten is too slow. So memory is bounded by FEED_MAX
events, however many sockets there are and however slowly they read, and so are the queries: one for each burst of news,
and one every heartbeat in case Redis lost the word of it. Runs while a socket is open; on the event loop only.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol

import msgspec
from channels.db import database_sync_to_async
from django.db import Error as DatabaseError
from django.db.models import QuerySet

from mqadmin.events import selectors
from mqadmin.events.kinds import EventFilter
from mqadmin.events.models import Event

logger = logging.getLogger(__name__)

# Kept for all sockets, at most some megabytes; how far behind a socket may be that is told of news as it comes.
FEED_MAX = 2_000
# Read by one query, for the feed or for a socket that catches up.
PAGE_ROWS = 500
# Between two readings: what comes meanwhile comes together.
READ_INTERVAL_S = 0.1
SOCKETS_MAX = 200
SOCKETS_PER_TOKEN_MAX = 20


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """An event, written once as the JSON that every socket sends."""

    id: int
    kind: str
    cluster: str
    group: str
    text: str


class FedSocket(Protocol):
    """A socket that follows the feed. All methods return at once."""

    token_id: int

    def send_news_soon(self) -> None: ...

    def send_heartbeat_soon(self) -> None: ...


class EventFeed:
    """`last_id`: up to which events were read. `complete_after`: all later ones up to `last_id` are at hand."""

    def __init__(self, heartbeat_s: float, *, feed_max: int = FEED_MAX) -> None:
        self.heartbeat_s = heartbeat_s
        self.last_id = 0
        self.complete_after = 0
        self._feed_max = feed_max
        self._events: deque[FeedEvent] = deque()
        self._sockets: set[FedSocket] = set()
        self._has_news = asyncio.Event()
        self._is_started = asyncio.Lock()
        self._loop_tasks: list[asyncio.Task[None]] = []

    def has_room(self, token_id: int) -> bool:
        """Tells whether a further socket of this token may follow."""
        of_token = Counter(socket.token_id for socket in self._sockets)
        return len(self._sockets) < SOCKETS_MAX and of_token[token_id] < SOCKETS_PER_TOKEN_MAX

    async def add(self, socket: FedSocket) -> None:
        """Lets a socket follow; afterwards `last_id` is what was the newest event just now, or a newer one."""
        self._sockets.add(socket)
        async with self._is_started:
            if not self._loop_tasks:
                # Nobody followed until now, and what came meanwhile was not read.
                self._events.clear()
                self.last_id = self.complete_after = (await _window()).last_id
                self._loop_tasks = [asyncio.create_task(self._read_on()), asyncio.create_task(self._beat())]

    def remove(self, socket: FedSocket) -> None:
        self._sockets.discard(socket)
        if not self._sockets:
            for task in self._loop_tasks:
                task.cancel()
            self._loop_tasks = []

    def wake(self) -> None:
        """Has new events read soon."""
        self._has_news.set()

    def after(self, position: int, count_max: int) -> Sequence[FeedEvent]:
        """Returns the events that follow `position`, which is no earlier than `complete_after`, the oldest first."""
        newest_first = list(takewhile(lambda event: event.id > position, reversed(self._events)))
        return newest_first[::-1][:count_max]

    async def _read_on(self) -> None:
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            try:
                while await self._read_page():
                    pass
            except DatabaseError as error:
                logger.warning("new events were not read for %d scripts: %s", len(self._sockets), error)
            await asyncio.sleep(READ_INTERVAL_S)

    async def _read_page(self) -> bool:
        """Returns whether there may be more."""
        page = await read_page(EventFilter(), self.last_id)
        for event in page:
            self._events.append(event)
            self.last_id = event.id
        while len(self._events) > self._feed_max:
            self.complete_after = self._events.popleft().id
        for socket in tuple(self._sockets) if page else ():
            socket.send_news_soon()
        return len(page) == PAGE_ROWS

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.heartbeat_s)
            self.wake()
            for socket in tuple(self._sockets):
                socket.send_heartbeat_soon()


async def read_page(wanted: EventFilter, after: int) -> list[FeedEvent]:
    """Returns the next PAGE_ROWS events by cluster and kind; patterns of groups are for the caller to apply."""
    rows: list[Event] = await _listed(selectors.matching(wanted).filter(pk__gt=after)[:PAGE_ROWS])
    return [
        FeedEvent(row.pk, row.kind, row.cluster_name, row.group_name, msgspec.json.encode(_told(row)).decode())
        for row in rows
    ]


def _told(row: Event) -> dict[str, Any]:
    return {
        "type": "event",
        "id": row.pk,
        "at": row.at,
        "kind": row.kind,
        "cluster": row.cluster_name,
        "group": row.group_name,
        "data": row.data,
    }


def _list(rows: QuerySet[Event]) -> list[Event]:
    return list(rows)


_listed = database_sync_to_async(_list)
_window = database_sync_to_async(selectors.window)
