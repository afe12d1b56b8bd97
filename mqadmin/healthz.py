"""The addresses that machines ask, answered before Django: no session, no log-in, no host name to be allowed.

/healthz   200 "ok": this process answers. Touches neither database nor Redis, cheap enough for every second
/readyz    200, or 503: `readiness.py`, a line a part
/metrics   Prometheus: `metrics/`, for this machine or with a token, else 403
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import DatabaseError

from mqadmin.metrics.page import CONTENT_TYPE, MetricsPage, may_read
from mqadmin.readiness import ReadinessChecks, make_checks

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
# Status, content type, body.
Answer = tuple[int, str, bytes]

TEXT = "text/plain; charset=utf-8"
_REFUSED = "metrics are for this machine, or for a bearer token: set MQADMIN_METRICS_TOKEN and send it\n"


def before(
    application: Application, *, checks: ReadinessChecks | None = None, metrics: MetricsPage | None = None
) -> Application:
    """Returns an ASGI application that answers these addresses itself and passes the rest to `application`."""
    checks = checks or make_checks()
    metrics = metrics or MetricsPage()

    async def health(_: Scope) -> Answer:
        return 200, TEXT, b"ok\n"

    async def ready(_: Scope) -> Answer:
        readiness = await checks.readiness()
        return (200 if readiness.is_ready else 503), TEXT, readiness.text.encode()

    async def scrape(scope: Scope) -> Answer:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client = (scope.get("client") or ("", 0))[0]
        if not may_read(settings.MQADMIN_METRICS_TOKEN, client, headers):
            return 403, TEXT, _REFUSED.encode()
        try:
            return 200, CONTENT_TYPE, await database_sync_to_async(metrics.text, thread_sensitive=False)()
        except DatabaseError:
            return 503, TEXT, b"the database does not answer\n"

    answers = {"/healthz": health, "/readyz": ready, "/metrics": scrape}

    async def answer_or_pass_on(scope: Scope, receive: Receive, send: Send) -> None:
        answer = answers.get(scope["path"])
        if answer is None:
            await application(scope, receive, send)
            return
        status, content_type, body = (
            await answer(scope) if scope["method"] in ("GET", "HEAD") else (405, TEXT, b"GET alone\n")
        )
        headers = [
            (b"content-type", content_type.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    return answer_or_pass_on
