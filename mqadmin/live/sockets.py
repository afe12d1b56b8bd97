"""The websocket of an open page, one per page: brings its region when something changed, and a heartbeat.

    client → {"type": "subscribe", "subscriptions": […], "page", "language"}   once, within 10 s (subscriptions.py)
    client ← {"type": "subscribed", "heartbeat_s": 10, "revision": "…"}   differs from the page's own: fetch the region
    client → {"type": "ready"}                             it can take a region: after each one, once it is shown
    client ← binary: the region, compressed by gzip        something changed, and the page was ready (pushes.py)
    client ← {"type": "changed", "changes": […]}           fetch the region: it cannot be pushed, or no page was named
    client ← {"type": "heartbeat"}                         none within two intervals: the page says "disconnected"

Close codes: 4400 a message that pages do not send, or none within the limits; 4401 not logged in, or not any more; 4403
the account may not see it any more; 4404 no such cluster or group, or none that the viewer may see; 4408 a frame was
not taken within 30 s: the page connects again and fetches what is so by then. However much changes, a page gets a
region, or "changed", at most twice a second. Subscriptions are checked when they arrive, the log-in at every heartbeat
(heartbeats.py), the log-in and what the viewer may see before each region and each change; an idle socket asks the
database nothing else.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.db import Error as DatabaseError

from mqadmin.clusters import selectors
from mqadmin.live.bounded_sockets import CLOSE_INVALID_MESSAGE, CLOSE_NOT_FOUND, BoundedSocket
from mqadmin.live.changes import ChangeListener
from mqadmin.live.heartbeats import Heartbeats
from mqadmin.live.pushes import Pushes
from mqadmin.live.regions import PageAddress
from mqadmin.live.revisions import revision_of
from mqadmin.live.subscriptions import InvalidMessage, Ready, Subscribe, Subscription, read_message
from mqadmin.live.viewers import CLOSE_NOT_LOGGED_IN, Viewer, viewer_of
from mqadmin.people import access

logger = logging.getLogger(__name__)

# Between two "changed" of one page.
CHANGED_INTERVAL_S = 0.5


class LiveSocket(BoundedSocket):
    """One page's socket. All that it sends after "subscribed" is sent by its own loop, in order."""

    # None of its own: one listens for all (changes.py).
    channel_layer_alias = ""

    def __init__(
        self,
        *args: Any,
        heartbeats: Heartbeats,
        changes: ChangeListener,
        pushes: Pushes,
        changed_interval_s: float = CHANGED_INTERVAL_S,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.viewer = Viewer("", None, "")
        # Without a page, nothing is pushed.
        self.address = PageAddress("", "")
        self.cluster_ids: frozenset[int] = frozenset()
        self._heartbeats = heartbeats
        self._listener = changes
        self._pushes = pushes
        self._changed_interval_s = changed_interval_s
        # By cluster and group; empty until the page has subscribed.
        self._subscriptions: dict[tuple[str, str], Subscription] = {}
        self._is_stale = False
        self._is_ready = False
        self._pushed_digest = b""
        # What the loop is to send: a region, the latest change per thing and kind, a heartbeat, a close.
        self._region = b""
        self._must_fetch = False
        self._changes: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._is_heartbeat_due = False
        self._close_code = 0

    async def connect(self) -> None:
        # Accepted first: a refusal before that reaches a browser as 1006 without the reason.
        await self.accept()
        user = self.scope["user"]
        if not user.is_authenticated:
            await self.close(CLOSE_NOT_LOGGED_IN)
            return
        self.viewer = viewer_of(self.scope["session"].session_key, user)
        self._begin_waiting()

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - the name is Channels'
        self._stop_loop()
        await self._leave()

    async def _leave(self) -> None:
        self._heartbeats.remove(self)
        self._pushes.remove(self)
        self._changes.clear()
        self._region = b""
        await self._listener.remove(self, self._subscriptions.keys())

    async def receive(self, text_data: str | None = None, **_: Any) -> None:
        try:
            if text_data is None:
                raise InvalidMessage("pages send text")
            message = read_message(text_data)
            if isinstance(message, Ready) != bool(self._subscriptions):
                raise InvalidMessage("a page subscribes once, before all else")
        except InvalidMessage:
            await self.close(CLOSE_INVALID_MESSAGE)
            return
        if isinstance(message, Ready):
            self._is_ready = True
            self._wake()
            return
        self._stop_loop()
        try:
            await self._subscribe(message)
        except BaseException:
            await self._leave()
            raise

    async def _subscribe(self, wanted: Subscribe) -> None:
        self._subscriptions = {(each.cluster, each.group): each for each in wanted.subscriptions}
        things = self._subscriptions.keys()
        names = {cluster for cluster, _group in things}
        seen = await _seen_of(self.scope["user"], names)
        if await _existing(things) != things or seen.keys() != names:
            await self.close(CLOSE_NOT_FOUND)
            return
        self.cluster_ids = frozenset(seen.values())
        self.address = PageAddress(wanted.page, wanted.language)
        await self._listener.add(self, things)
        # After joining: what changes from here on is sent, what changed before shows in the revision.
        revision = await _revision_of({each.live_group for each in wanted.subscriptions})
        subscribed = {"type": "subscribed", "heartbeat_s": self._heartbeats.interval_s, "revision": revision or ""}
        await self.send(text_data=json.dumps(subscribed))
        self._begin_sending()
        self._heartbeats.add(self)
        self._pushes.add(self)

    def take_change(self, change: dict[str, Any]) -> None:
        key = change["cluster"], change["group"]
        if not self._subscriptions[key].covers(change["kind"]):
            return
        if self.address.page:
            self._is_stale = True
            self._wake()
        else:
            self._changes[*key, change["kind"]] = change
            self._has_work.set()

    @property
    def wants_region(self) -> bool:
        return self._is_stale and self._is_ready

    def begin_region(self) -> None:
        self._is_stale = False

    def push_soon(self, frame: bytes, digest: bytes) -> None:
        if digest == self._pushed_digest:
            return
        self._is_ready = False
        self._pushed_digest = digest
        self._region = frame
        self._has_work.set()

    def fetch_soon(self) -> None:
        self._pushed_digest = b""
        self._must_fetch = True
        self._has_work.set()

    def send_heartbeat_soon(self) -> None:
        self._is_heartbeat_due = True
        self._has_work.set()

    def close_soon(self, code: int) -> None:
        self._close_code = code
        self._has_work.set()

    def _wake(self) -> None:
        if self.wants_region:
            self._pushes.wake(self.address)

    async def _send_on(self) -> None:
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            if self._close_code:
                await self.close(self._close_code)
                return
            if self._is_heartbeat_due:
                self._is_heartbeat_due = False
                await self._say({"type": "heartbeat"})
            if self._region:
                region, self._region = self._region, b""
                await self._take(region)
            if self._changes or self._must_fetch:
                changes, self._changes, self._must_fetch = self._changes, {}, False
                if changes:
                    try:
                        self._close_code = await self._pushes.close_code(self)
                    except DatabaseError as error:
                        # The page's own request says what is wrong.
                        logger.warning("a page is not told what changed, but to fetch it: %s", error)
                        changes = {}
                if self._close_code:
                    await self.close(self._close_code)
                    return
                await self._say({"type": "changed", "changes": list(changes.values())})
                await asyncio.sleep(self._changed_interval_s)


def _seen(user: Any, names: set[str]) -> dict[str, int]:
    """Returns those of the clusters of these names that the person sees, with their primary keys."""
    return dict(access.visible_clusters(user).filter(name__in=names).values_list("name", "pk"))


_seen_of = database_sync_to_async(_seen)
_existing = database_sync_to_async(selectors.existing)
_revision_of = sync_to_async(revision_of)
