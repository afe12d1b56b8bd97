"""A page's websocket against an ASGI application (`channels.testing` has one too, and wants daphne)."""

from __future__ import annotations

import json
from typing import Any

from asgiref.testing import ApplicationCommunicator

# A deadline for what must come; asgiref's own, 1 s, is short for a machine that does other things too.
HEARD_WITHIN_S = 60.0


class PageSocket(ApplicationCommunicator):
    def __init__(self, application: Any, path: str, headers: list[tuple[bytes, bytes]]) -> None:
        super().__init__(
            application,
            {"type": "websocket", "path": path, "query_string": b"", "headers": headers, "subprotocols": []},
        )

    async def receive_output(self, timeout: float = HEARD_WITHIN_S) -> Any:  # noqa: ASYNC109 - asgiref's name
        """The application's next event. Raises TimeoutError after `timeout` seconds."""
        return await super().receive_output(timeout)

    async def wait(self, timeout: float = HEARD_WITHIN_S) -> None:  # noqa: ASYNC109 - asgiref's name
        """Waits for the application's end, for `timeout` seconds, and raises its error."""
        await super().wait(timeout)

    async def connect(self) -> bool:
        """Whether the application accepted it."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output()
        return bool(answer["type"] == "websocket.accept")

    async def heard(self) -> Any:
        """The next text, as JSON."""
        answer = await self.receive_output()
        assert answer["type"] == "websocket.send", answer
        return json.loads(answer["text"])

    async def close_code(self) -> int:
        answer = await self.receive_output()
        assert answer["type"] == "websocket.close", answer
        return int(answer["code"])

    async def say(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait()
