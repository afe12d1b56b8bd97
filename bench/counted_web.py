"""The console with a counter: what `bench live` asks, at /bench, for the queries and the memory of the web process."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from mqadmin.asgi import application as console  # sets Django up

from django.db.backends.signals import connection_created  # isort: skip

counts: Counter[str] = Counter()
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


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http" or scope["path"] != "/bench":
        if scope["type"] == "http":
            count("requests")
        await console(scope, receive, send)
        return
    answer = json.dumps({**counts, "rss": _rss_bytes()}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]})
    await send({"type": "http.response.body", "body": answer})


def _rss_bytes() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
