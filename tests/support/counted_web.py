"""The console with counters, at /bench: queries, renderings, memory, and what lies unread in its websockets."""

from __future__ import annotations

import gc
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from mqadmin.asgi import application as console  # sets Django up

from django.db.backends.signals import connection_created  # isort: skip

from mqadmin.answering_sockets import AnsweringWebSocket
from mqadmin.console import live_page

counts: Counter[str] = Counter(queries=0, renderings=0, requests=0)
lock = threading.Lock()


def count(what: str) -> None:
    with lock:
        counts[what] += 1


def counted(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    count("queries")
    return execute(sql, params, many, context)


def count_queries(connection: Any, **_: Any) -> None:
    if counted not in connection.execute_wrappers:
        connection.execute_wrappers.append(counted)


connection_created.connect(count_queries)

render_to_string = live_page.render_to_string


def counted_rendering(*args: Any) -> str:
    count("renderings")
    return render_to_string(*args)


live_page.render_to_string = counted_rendering  # type: ignore[assignment]


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http" or scope["path"] != "/bench":
        if scope["type"] == "http":
            count("requests")
        await console(scope, receive, send)
        return
    answer = json.dumps({**counts, "rss": _rss_bytes(), "unread": max(_unread(), default=0)}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]})
    await send({"type": "http.response.body", "body": answer})


def _rss_bytes() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def _unread() -> list[int]:
    """What was written to each open websocket and has not left this process."""
    open_ones = [one for one in gc.get_objects() if type(one) is AnsweringWebSocket and not one.disconnected]
    return [one.transport.get_write_buffer_size() for one in open_ones]
