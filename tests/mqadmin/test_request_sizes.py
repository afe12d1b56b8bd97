"""Bodies that are too large are refused before they are kept, with a length and without one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from mqadmin.asgi import pages
from mqadmin.request_sizes import bounded


async def answer_to(chunks: list[bytes], headers: list[tuple[bytes, bytes]]) -> tuple[int, int]:
    """Returns the status, and how many chunks were read."""
    sent: list[Mapping[str, Any]] = []
    left = list(chunks)

    async def receive() -> Mapping[str, Any]:
        if not left:
            await asyncio.Event().wait()
        body = left.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(left)}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/nowhere",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), *headers],
    }
    await bounded(pages, bytes_max=100)(scope, receive, send)
    return sent[0]["status"], len(chunks) - len(left)


@pytest.mark.django_db
async def test_a_body_that_is_too_large_is_refused_as_soon_as_that_is_known() -> None:
    assert await answer_to([b"x" * 60] * 9, [(b"content-length", b"540")]) == (413, 0)
    assert await answer_to([b"x" * 60] * 9, []) == (413, 2)
    assert await answer_to([b"x" * 60] * 9, [(b"content-length", b"6")]) == (413, 2)
    status, count = await answer_to([b"x" * 50] * 2, [])
    assert status != 413
    assert count == 2
