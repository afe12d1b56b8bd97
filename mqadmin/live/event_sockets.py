"""The websocket of a script with an API token: every event that it wants, in order, each with its number.

    client → {"type": "subscribe", "after": 4711, …}   once, within 10 s (event_requests.py)
    client ← {"type": "subscribed", "version": 1, "heartbeat_s": 10, "oldest_id": 17, "last_id": 4720}
    client ← {"type": "gap", "after": 4711, "oldest_id": 4800, "read": […]}   what came between is not kept any more
    client ← {"type": "event", "id": 4712, "at", "kind", "cluster", "group", "data"}
    client ← {"type": "heartbeat", "last_id": 4720}    everything wanted up to this number was sent

A script that was away subscribes `after` the last number that it has. docs/LIVE.md is the contract. The token is
checked when the socket is opened, and again before an event or a heartbeat is sent more than TOKEN_CHECK_S later; what
it may see is read anew then, too.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

from channels.db import database_sync_to_async
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.events import selectors
from mqadmin.events.kinds import EventFilter
from mqadmin.live.bounded_sockets import CLOSE_INVALID_MESSAGE, CLOSE_NOT_FOUND, BoundedSocket, TooSlow
from mqadmin.live.event_feed import PAGE_ROWS, EventFeed, FeedEvent, read_page
from mqadmin.live.event_requests import EventsWanted, read_events_wanted
from mqadmin.live.events import EVENT_FEEDS
from mqadmin.live.subscriptions import InvalidMessage
from mqadmin.live.viewers import CLOSE_NOT_LOGGED_IN
from mqadmin.people import access
from mqadmin.tokens import guesses
from mqadmin.tokens.models import ApiToken
from mqadmin.tokens.selectors import token_of_secret

VERSION = 1
# Each check asks the database up to four times, of 200 sockets at most.
TOKEN_CHECK_S = 5.0
CLOSE_TOO_MANY = 4429
# Addresses that say what is so now, for a script that has missed events.
READ_INSTEAD = ("/api/v1/clusters", "/api/v1/clusters/{cluster}/groups", "/api/v1/clusters/{cluster}/rebalances")


class _NotAllowed(Exception):
    """The token is not valid any more."""


class EventSocket(BoundedSocket):
    """One script's socket. All that it sends after "subscribed" is sent by its own loop, in order."""

    groups = (EVENT_FEEDS,)

    def __init__(self, *args: Any, feed: EventFeed, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.token_id = 0
        self._feed = feed
        self._wanted: EventsWanted | None = None
        self._filter = EventFilter()
        # Everything wanted up to this number was sent.
        self._position = 0
        self._is_live = False
        self._is_heartbeat_due = False
        self._checked_at_s = 0.0

    async def connect(self) -> None:
        # Accepted first: a refusal before that reaches a client without the reason.
        await self.accept()
        client = self.scope.get("client") or ("",)
        token = await _token_of(_secret_of(self.scope["headers"]), client[0])
        if token is None:
            await self.close(CLOSE_NOT_LOGGED_IN)
        elif not self._feed.has_room(token.pk):
            await self.close(CLOSE_TOO_MANY)
        else:
            self.token_id = token.pk
            self._begin_waiting()

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - the name is Channels'
        self._stop_loop()
        await self._leave()

    async def _leave(self) -> None:
        self._feed.remove(self)

    async def receive(self, text_data: str | None = None, **_: Any) -> None:
        try:
            if not self.token_id or self._wanted is not None or text_data is None:
                raise InvalidMessage("one subscribe message is all that a script may send")
            self._wanted = wanted = read_events_wanted(text_data)
        except InvalidMessage as error:
            await self._say({"type": "error", "detail": str(error)})
            await self.close(CLOSE_INVALID_MESSAGE)
            return
        self._stop_loop()
        seen = await _seen_by(self.token_id)
        if seen is None or not await _are_there(wanted.clusters, seen.seen):
            await self.close(CLOSE_NOT_LOGGED_IN if seen is None else CLOSE_NOT_FOUND)
            return
        clusters, kinds = frozenset(wanted.clusters), frozenset(wanted.kinds)
        self._filter = replace(seen, clusters=clusters, kinds=kinds, groups=wanted.groups)
        self._checked_at_s = time.monotonic()
        if not self._feed.has_room(self.token_id):
            await self.close(CLOSE_TOO_MANY)
            return
        try:
            await self._feed.add(self)
            await self._begin(wanted)
            self._begin_sending()
        except BaseException:
            # Channels does not call `disconnect` then, and a place among the token's sockets would be lost.
            await self._leave()
            raise

    async def live_recorded(self, _event: dict[str, Any]) -> None:
        """Receives a Channels event: there are new ones."""
        self._feed.wake()

    def send_news_soon(self) -> None:
        self._has_work.set()

    def send_heartbeat_soon(self) -> None:
        self._is_heartbeat_due = True
        self._has_work.set()

    async def _begin(self, wanted: EventsWanted) -> None:
        window = await _window()
        self._position = self._feed.last_id if wanted.after is None else wanted.after
        await self._say(
            {
                "type": "subscribed",
                "version": VERSION,
                "heartbeat_s": self._feed.heartbeat_s,
                "oldest_id": window.oldest_id,
                "last_id": max(window.last_id, self._feed.last_id),
            }
        )
        if wanted.after is not None and window.has_gap_after(wanted.after):
            gap = {"type": "gap", "after": wanted.after, "oldest_id": window.oldest_id, "read": list(READ_INSTEAD)}
            await self._say(gap)
            # A number that was never given tells nothing of what the script has: it goes on from now.
            is_unknown = wanted.after > window.last_id
            self._position = self._feed.last_id if is_unknown else max(0, window.oldest_id - 1)

    async def _send_on(self) -> None:
        with suppress(_NotAllowed):
            await self._send_events()
        await self.close(CLOSE_NOT_LOGGED_IN)

    async def _send_events(self) -> None:
        """Sends until the token is not valid any more: then raises _NotAllowed."""
        while True:
            if self._position < self._feed.complete_after:
                await self._send_page()
                continue
            self._is_live = True
            await self._send_news()
            if self._is_heartbeat_due:
                self._is_heartbeat_due = False
                await self._check_token()
                await self._say({"type": "heartbeat", "last_id": self._position})
            if self._position >= self._feed.last_id:
                await self._has_work.wait()
                self._has_work.clear()

    async def _send_page(self) -> None:
        """Catches up by a page from the database. Raises TooSlow for a socket that was up to date before."""
        if self._is_live:
            raise TooSlow
        # Read by now, so the page has what of it is wanted.
        complete_after = self._feed.complete_after
        page = await read_page(self._filter, self._position)
        for event in page:
            await self._send_wanted(event)
        if len(page) < PAGE_ROWS:
            self._position = max(self._position, complete_after)

    async def _send_news(self) -> None:
        for event in self._feed.after(self._position, PAGE_ROWS):
            await self._send_wanted(event)

    async def _send_wanted(self, event: FeedEvent) -> None:
        """Sends an event that the script wants and may see by now, since frames before it may have taken long."""
        await self._check_token()
        if self._filter.wants(event.kind, event.cluster, event.group):
            await self._take(event.text)
        self._position = event.id

    async def _check_token(self) -> None:
        """Reads anew what the token sees when that is TOKEN_CHECK_S old. Raises _NotAllowed."""
        if time.monotonic() - self._checked_at_s < TOKEN_CHECK_S:
            return
        self._checked_at_s = time.monotonic()
        seen = await _seen_by(self.token_id)
        if seen is None:
            raise _NotAllowed
        self._filter = replace(self._filter, seen=seen.seen)


def _secret_of(headers: list[tuple[bytes, bytes]]) -> str:
    value = next((value for name, value in headers if name == b"authorization"), b"").decode("latin-1")
    scheme, _space, secret = value.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _known_token(secret: str, address: str) -> ApiToken | None:
    """Returns the valid token with this secret; None also for an address that guessed too often."""
    if guesses.wait_after_failures_s(address) is not None:
        return None
    token = token_of_secret(secret)
    if token is None:
        guesses.count_failure(address)
        return None
    token.note_use(timezone.now(), address)
    return token


def _clusters_seen(token_id: int) -> EventFilter | None:
    """Returns which clusters the token sees; None when it is not valid any more."""
    token = ApiToken.objects.select_related("person").filter(pk=token_id).first()
    if token is None or not token.is_valid(timezone.now()):
        return None
    if access.sees_all(token.person, token.scope):
        return EventFilter()
    names = access.visible_clusters(token.person, token.scope).values_list("name", flat=True)
    return EventFilter(seen=frozenset(names))


def _have_names(clusters: tuple[str, ...], seen: frozenset[str] | None) -> bool:
    names = Cluster.objects.values_list("name", flat=True) if seen is None else seen
    return set(names) >= set(clusters)


_token_of = database_sync_to_async(_known_token)
_seen_by = database_sync_to_async(_clusters_seen)
_are_there = database_sync_to_async(_have_names)
_window = database_sync_to_async(selectors.window)
