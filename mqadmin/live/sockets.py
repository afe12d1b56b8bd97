"""The websocket of an open page: says what changed, and that it is alive.

    client ← {"type": "hello", "heartbeat_s": 10}       after the page was let in
    client ← {"type": "changed", "changes": [{"kind", "cluster", "group", "revision"}, …]}
    client ← {"type": "heartbeat"}                      nothing for two of them: the page says "disconnected"

Close code 4401: not logged in. 4404: no such cluster or group. What a page sends is ignored. However much changes, a
page hears of it at most twice a second; of several changes of one kind it hears the latest.
"""

from __future__ import annotations

import asyncio
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer

from mqadmin.clusters.models import Cluster, Group
from mqadmin.live.events import live_group

HEARTBEAT_S = 10.0
# Between two "changed" of one page.
CHANGED_INTERVAL_S = 0.5
CLOSE_NOT_LOGGED_IN = 4401
CLOSE_NOT_FOUND = 4404


class LiveSocket(AsyncJsonWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    """One page's; it joins the live group of the cluster, or of the group, that its address names."""

    heartbeat_s = HEARTBEAT_S
    changed_interval_s = CHANGED_INTERVAL_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._joined = ""
        self._group = ""
        self._loop_tasks: list[asyncio.Task[None]] = []
        # Latest change per kind, waiting to be told.
        self._changes: dict[str, dict[str, Any]] = {}
        self._has_changes = asyncio.Event()

    async def connect(self) -> None:
        # Accepted first: a refusal before that reaches a browser as 1006 without the reason.
        await self.accept()
        if not self.scope["user"].is_authenticated:
            await self.close(CLOSE_NOT_LOGGED_IN)
            return
        names = self.scope["url_route"]["kwargs"]
        cluster, self._group = names["cluster"], names.get("group", "")
        if not await _exists(cluster, self._group):
            await self.close(CLOSE_NOT_FOUND)
            return
        self._joined = live_group(cluster, self._group)
        await self.channel_layer.group_add(self._joined, self.channel_name)
        await self.send_json({"type": "hello", "heartbeat_s": self.heartbeat_s})
        self._loop_tasks = [asyncio.create_task(self._beat()), asyncio.create_task(self._tell())]

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - the name is Channels'
        for task in self._loop_tasks:
            task.cancel()
        if self._joined:
            await self.channel_layer.group_discard(self._joined, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any) -> None:
        """A page has nothing to say."""

    async def live_changed(self, event: dict[str, Any]) -> None:
        for change in event["changes"]:
            if change["group"] == self._group:
                self._changes[change["kind"]] = change
                self._has_changes.set()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.heartbeat_s)
            await self.send_json({"type": "heartbeat"})

    async def _tell(self) -> None:
        while True:
            await self._has_changes.wait()
            self._has_changes.clear()
            changes, self._changes = self._changes, {}
            await self.send_json({"type": "changed", "changes": list(changes.values())})
            await asyncio.sleep(self.changed_interval_s)


@database_sync_to_async  # type: ignore[untyped-decorator]
def _exists(cluster: str, group: str) -> bool:
    if group:
        return Group.objects.filter(cluster__name=cluster, name=group).exists()
    return Cluster.objects.filter(name=cluster).exists()
