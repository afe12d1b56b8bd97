"""The websocket of an open page, one per page: sends what changed, and a heartbeat.

    client → {"type": "subscribe", "subscriptions": […]}   once, within 10 s (subscriptions.py)
    client ← {"type": "subscribed", "heartbeat_s": 10, "revision": "…"}   differs from the page's own: fetch the region
    client ← {"type": "changed", "changes": [{"kind", "cluster", "group", "revision"}, …]}
    client ← {"type": "heartbeat"}                         none within two intervals: the page says "disconnected"

Close codes: 4400 no subscribe message within the limits; 4401 not logged in, or not any more; 4403 the account may not
see it any more; 4404 no such cluster or group, or none that the viewer may see; 4408 a frame was not taken within 30 s:
the page connects again and fetches what is so by then. However much changes, a page gets "changed" at most twice a
second; of several changes of the same kind and thing it gets the latest. Subscriptions are
checked when they arrive, the log-in at every heartbeat (heartbeats.py); an idle socket asks the database nothing else.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async

from mqadmin.clusters import selectors
from mqadmin.live.bounded_sockets import CLOSE_INVALID_MESSAGE, CLOSE_NOT_FOUND, BoundedSocket
from mqadmin.live.heartbeats import Heartbeats
from mqadmin.live.revisions import revision_of
from mqadmin.live.subscriptions import InvalidMessage, Subscription, read_subscribe
from mqadmin.live.viewers import CLOSE_NOT_LOGGED_IN, Viewer, viewer_of
from mqadmin.people import access

# Between two "changed" of one page.
CHANGED_INTERVAL_S = 0.5


class LiveSocket(BoundedSocket):
    """One page's socket. All that it sends after "subscribed" is sent by its own loop, in order."""

    def __init__(
        self,
        *args: Any,
        heartbeats: Heartbeats,
        changed_interval_s: float = CHANGED_INTERVAL_S,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.viewer = Viewer("", None, "")
        self._heartbeats = heartbeats
        self._changed_interval_s = changed_interval_s
        # By cluster and group; empty until the page has subscribed.
        self._subscriptions: dict[tuple[str, str], Subscription] = {}
        self._joined: set[str] = set()
        # What the loop is to send: the latest change per thing and kind, a heartbeat, a close.
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
        self._changes.clear()
        joined, self._joined = self._joined, set()
        for live_group in joined:
            await self.channel_layer.group_discard(live_group, self.channel_name)

    async def receive(self, text_data: str | None = None, **_: Any) -> None:
        try:
            if self._subscriptions or text_data is None:
                raise InvalidMessage("one subscribe message is all that a page may send")
            subscriptions = read_subscribe(text_data)
        except InvalidMessage:
            await self.close(CLOSE_INVALID_MESSAGE)
            return
        self._subscriptions = {(each.cluster, each.group): each for each in subscriptions}
        names = {cluster for cluster, _group in self._subscriptions}
        if await _existing(self._subscriptions.keys()) != self._subscriptions.keys() or not await _may_see(
            self.scope["user"], names
        ):
            await self.close(CLOSE_NOT_FOUND)
            return
        self._joined = {subscription.live_group for subscription in subscriptions}
        for joined in self._joined:
            await self.channel_layer.group_add(joined, self.channel_name)
        # After joining: what changes from here on is sent, what changed before shows in the revision.
        revision = await _revision_of(self._joined)
        subscribed = {"type": "subscribed", "heartbeat_s": self._heartbeats.interval_s, "revision": revision or ""}
        await self.send(text_data=json.dumps(subscribed))
        self._begin_sending()
        self._heartbeats.add(self)

    async def live_changed(self, event: dict[str, Any]) -> None:
        """Receives a Channels event: changes of one live group, some of them of things that others show."""
        for change in event["changes"]:
            key = change["cluster"], change["group"]
            subscription = self._subscriptions.get(key)
            if subscription is not None and subscription.covers(change["kind"]):
                self._changes[*key, change["kind"]] = change
                self._has_work.set()

    def send_heartbeat_soon(self) -> None:
        self._is_heartbeat_due = True
        self._has_work.set()

    def close_soon(self, code: int) -> None:
        self._close_code = code
        self._has_work.set()

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
            if self._changes:
                changes, self._changes = self._changes, {}
                await self._say({"type": "changed", "changes": list(changes.values())})
                await asyncio.sleep(self._changed_interval_s)


def _sees(user: Any, names: set[str]) -> bool:
    return access.visible_clusters(user).filter(name__in=names).count() == len(names)


_may_see = database_sync_to_async(_sees)
_existing = database_sync_to_async(selectors.existing)
_revision_of = sync_to_async(revision_of)
