"""What all websockets of the console bound: the time until a client subscribes, and until it takes a frame."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer

SUBSCRIBE_WITHIN_S = 10.0
# A frame that the client has not taken by then: the connection is given up.
SEND_WITHIN_S = 30.0
CLOSE_INVALID_MESSAGE = 4400
CLOSE_NOT_FOUND = 4404
CLOSE_TOO_SLOW = 4408


class TooSlow(Exception):
    """The client takes nothing, or is too far behind."""


class BoundedSocket(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    """A socket whose frames are sent by its own loop, in order. A subclass says in `_send_on` which."""

    def __init__(
        self,
        *args: Any,
        subscribe_within_s: float = SUBSCRIBE_WITHIN_S,
        send_within_s: float = SEND_WITHIN_S,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._subscribe_within_s = subscribe_within_s
        self._send_within_s = send_within_s
        self._has_work = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Passes an event to its method: Channels' own, without a thread's turn for each to look for connections.

        What asks the database here closes its old connections by itself.
        """
        await getattr(self, get_handler_name(message))(message)

    async def _send_on(self) -> None:
        """Sends until the socket is closed. Raises TooSlow."""
        raise NotImplementedError

    async def _leave(self) -> None:
        """Hears of nothing any more."""
        raise NotImplementedError

    def _begin_waiting(self) -> None:
        """Closes the socket unless `_stop_loop` is called in time: once the client has subscribed.

        How long a busy server takes to carry the subscription out is not the client's delay.
        """
        self._loop_task = asyncio.create_task(self._wait_for_subscribe())

    def _begin_sending(self) -> None:
        self._loop_task = asyncio.create_task(self._send_loop())

    def _stop_loop(self) -> None:
        if self._loop_task is not None:
            self._loop_task.cancel()

    async def _wait_for_subscribe(self) -> None:
        await asyncio.sleep(self._subscribe_within_s)
        with suppress(OSError):  # how ASGI servers say that the client is gone, until `disconnect` is called
            await self.close(CLOSE_INVALID_MESSAGE)

    async def _send_loop(self) -> None:
        with suppress(OSError):  # as above; a TimeoutError is one
            try:
                await self._send_on()
            except TooSlow:
                # It costs nothing from here on, also where the close frame waits behind what was not taken.
                await self._leave()
                async with asyncio.timeout(self._send_within_s):
                    await self.close(CLOSE_TOO_SLOW)

    async def _say(self, event: dict[str, Any]) -> None:
        await self._take(json.dumps(event))

    async def _take(self, frame: str | bytes) -> None:
        """Sends a frame. Raises TooSlow when the client does not take it."""
        content = {"text_data": frame} if isinstance(frame, str) else {"bytes_data": frame}
        try:
            async with asyncio.timeout(self._send_within_s):
                await self.send(**content)
        except TimeoutError as error:
            raise TooSlow from error
