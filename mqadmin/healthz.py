"""`/healthz`, answered without Django's middleware: cheap enough to be asked every second."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = "/healthz"


def before(application: Application) -> Application:
    """Returns an ASGI application that answers PATH itself and passes the rest to `application`."""

    async def answer_or_pass_on(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != PATH:
            await application(scope, receive, send)
            return
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/plain"), (b"cache-control", b"no-store")],
            }
        )
        await send({"type": "http.response.body", "body": b"ok\n"})

    return answer_or_pass_on
