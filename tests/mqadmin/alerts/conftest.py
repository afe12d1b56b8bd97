"""A cluster with groups, and a web server that takes what is posted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.utils import timezone

from mqadmin.alerts import sealing
from mqadmin.alerts.models import AlertChannel, AlertRule
from mqadmin.clusters.models import Cluster, Group
from tests.support import console_rows as seed


@dataclass
class Receiver:
    """What came, and what is answered: a status and a body for each post, the last one again and again."""

    port: int = 0
    answers: list[tuple[int, bytes]] = field(default_factory=lambda: [(200, b"{}")])
    posts: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?key=very-secret"

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _path, _headers, body in self.posts]


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.MQADMIN_ALERT_NETWORKS = ("127.0.0.0/8",)
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.posts.append((self.path, dict(self.headers), body))
            status, answer = found.answers.pop(0) if len(found.answers) > 1 else found.answers[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            if status in (301, 302, 307, 308):
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


@pytest.fixture
def prod(db: None, now: datetime) -> Cluster:
    cluster = seed.make_cluster("prod", now=now)
    seed.make_broker(cluster, now=now)
    return cluster


@pytest.fixture
def billing(prod: Cluster, now: datetime) -> Group:
    return seed.make_group(
        prod,
        "billing",
        now=now,
        verdict="stalled",
        verdict_rule="offset_stands",
        verdict_numbers={"members": 1, "lag": 120},
        lag=120,
    )


@pytest.fixture
def hook(receiver: Receiver, db: None) -> AlertChannel:
    """A signed webhook to the receiver."""
    return AlertChannel.objects.create(
        name="hook",
        kind="webhook",
        sealed=sealing.seal({"url": receiver.url, "secret": "s3cret"}),
        place="127.0.0.1",
        made_by="ann",
        made_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def make_rule(*channels: AlertChannel, name: str = "stalled", **values: Any) -> AlertRule:
    wanted = {"about": "verdict", "verdicts": ["stalled", "stopped"], "made_by": "ann", **values}
    rule = AlertRule.objects.create(name=name, made_at=datetime(2026, 1, 1, tzinfo=UTC), **wanted)
    rule.channels.set(channels)
    return rule
