"""Bounds requests: Django keeps a body on the disk before anybody looks at it, however large it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mqadmin.replay_files.limits import FILE_BYTES_MAX

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

# A file, and what a form puts around it.
REQUEST_BYTES_MAX = FILE_BYTES_MAX + 1024 * 1024


def bounded(application: Application, bytes_max: int = REQUEST_BYTES_MAX) -> Application:
    """Returns an application that answers 413 to larger bodies, whether they say their length or not."""

    async def answer(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if _said_length(scope) > bytes_max:
            await _refuse(send, bytes_max)
            return
        size = 0

        async def counted() -> Mapping[str, Any]:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            # For the application it is as if the client had gone; nothing was answered yet.
            return {"type": "http.disconnect"} if size > bytes_max else message

        await application(scope, counted, send)
        if size > bytes_max:
            await _refuse(send, bytes_max)

    return answer


def _said_length(scope: Mapping[str, Any]) -> int:
    said = dict(scope["headers"]).get(b"content-length", b"")
    return int(said) if said.isdigit() and len(said) <= 18 else 0


async def _refuse(send: Send, bytes_max: int) -> None:
    words = f"a request may have {bytes_max // 2**20} MiB\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(words)).encode())]
    await send({"type": "http.response.start", "status": 413, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": words})
