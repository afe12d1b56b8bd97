"""The region of a page as a viewer's own request would get it: asked of Django itself, with the viewer's session.

So every middleware, view and check that answers a viewer decides here, too, and a pushed region cannot differ from a
fetched one. Two regions are rendered at a time, on threads of their own with database connections of their own.
"""

from __future__ import annotations

import gzip
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from channels.db import database_sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.base import BaseHandler
from django.http import HttpResponse

# More would take the interpreter from those who wait for a page.
THREADS = 2
# Compressed; the page fetches a larger one by itself. Half a million characters of a table are some 40 KB.
REGION_BYTES_MAX = 256 * 1024


class RegionResponse(HttpResponse):
    """A live region, and nothing else: what a page may be pushed."""


@dataclass(frozen=True, slots=True)
class PageAddress:
    """What pages show that have the same region for viewers of the same rights."""

    page: str
    language: str


class Regions:
    """Renders regions. Its threads begin with the first one."""

    def __init__(self) -> None:
        self._handler: BaseHandler | None = None
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="regions")

    async def rendered(self, address: PageAddress, scope: dict[str, Any]) -> bytes | None:
        """Returns the region, compressed, for the viewer whose socket has this scope.

        None where there is nothing to push: no such page, not for this viewer, in another language, or too large.
        """
        render = database_sync_to_async(self._render, thread_sensitive=False, executor=self._pool)
        frame: bytes | None = await render(_request(address, scope), address.language)
        return frame

    def _render(self, request: ASGIRequest, language: str) -> bytes | None:
        response = self._loaded_handler().get_response(request)
        if not isinstance(response, RegionResponse) or response.headers.get("Content-Language") != language:
            return None
        # Without the time of compression: the same region is the same frame.
        frame = gzip.compress(response.content, compresslevel=5, mtime=0)
        return frame if len(frame) <= REGION_BYTES_MAX else None

    def _loaded_handler(self) -> BaseHandler:
        if self._handler is None:
            handler = BaseHandler()
            handler.load_middleware()
            self._handler = handler
        return self._handler


def _request(address: PageAddress, scope: dict[str, Any]) -> ASGIRequest:
    """Returns the request with which live.js would fetch the region."""
    path, _, query = address.page.partition("?")
    session = f"{settings.SESSION_COOKIE_NAME}={scope['session'].session_key}"
    headers = [(name, value) for name, value in scope["headers"] if name == b"host"]
    asked = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "https" if scope.get("scheme") == "wss" else "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "client": scope.get("client"),
        "server": scope.get("server"),
        "headers": [
            *headers,
            (b"cookie", session.encode()),
            (b"accept-language", address.language.encode()),
            (b"hx-request", b"true"),
        ],
    }
    return ASGIRequest(asked, BytesIO())
