"""What machines ask: alive, ready (and which part is not), metrics; answered without log-in, session and host name."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.utils import timezone

from mqadmin.clusters.models import Cluster, ClusterKind, FollowerLease
from mqadmin.healthz import before
from mqadmin.metrics.page import MetricsPage
from mqadmin.readiness import ReadinessChecks, make_checks
from tests.support.console_rows import make_cluster

OK = {"database": lambda: "ok", "redis": lambda: "ok"}


async def nothing(*_: Any) -> None:
    raise AssertionError("passed on")


async def ask(
    path: str,
    *,
    method: str = "GET",
    client: str = "127.0.0.1",
    headers: tuple[tuple[bytes, bytes], ...] = (),
    checks: ReadinessChecks | None = None,
) -> tuple[int, bytes]:
    application = before(nothing, checks=checks, metrics=MetricsPage(lambda: b"x 1\n"))
    scope = {"type": "http", "path": path, "method": method, "headers": list(headers), "client": (client, 4711)}
    communicator = ApplicationCommunicator(application, scope)
    status = (await communicator.receive_output(10))["status"]
    body = (await communicator.receive_output(10))["body"]
    await communicator.wait()
    return status, body


async def test_readyz_says_which_part_is_not_ready() -> None:
    checks = ReadinessChecks({**OK, "redis": lambda: "does not answer"})
    assert await ask("/readyz", checks=checks) == (503, b"database: ok\nredis: does not answer\n")
    assert await ask("/readyz", checks=ReadinessChecks(OK)) == (200, b"database: ok\nredis: ok\n")


async def test_a_part_that_hangs_is_not_ready_and_probes_do_not_pile_up() -> None:
    released, asked = threading.Event(), []

    def hangs() -> str:
        asked.append(1)
        released.wait(60)
        return "ok"

    checks = ReadinessChecks({"database": hangs}, within_s=0.05)
    try:
        for _ in range(5):
            assert await ask("/readyz", checks=checks) == (503, b"database: no answer within 0.05 s\n")
    finally:
        released.set()
    assert len(asked) == 1


async def test_metrics_are_for_this_machine_and_only_read() -> None:
    assert await ask("/metrics") == (200, b"x 1\n")
    assert await ask("/metrics", method="HEAD") == (200, b"")
    assert (await ask("/metrics", client="10.1.2.3"))[0] == 403
    assert (await ask("/metrics", headers=((b"x-forwarded-for", b"10.1.2.3"),)))[0] == 403
    assert (await ask("/metrics", method="POST"))[0] == 405


@pytest.mark.django_db(transaction=True)
async def test_the_parts_of_an_install() -> None:
    """Redis has no server in this test, and nobody follows yet."""
    from asgiref.sync import sync_to_async  # here alone

    now = timezone.now()
    await sync_to_async(make_cluster)(now=now)
    parts = (await make_checks().readiness()).parts
    assert (parts["database"], parts["migrations"]) == ("ok", "ok")
    assert parts["redis"] == "does not answer; see REDIS_URL"
    assert parts["following"].startswith("nobody follows the clusters")
    await sync_to_async(FollowerLease.objects.create)(expires_at=now, renewed_at=now - timedelta(seconds=10))
    assert (await make_checks().readiness()).parts["following"] == "ok"
    await sync_to_async(make_cluster)("old", now=now, kind=ClusterKind.APACHE, last_tried_at=now - timedelta(minutes=5))
    assert (await make_checks().readiness()).parts["following"].startswith("1 clusters are not polled")
    old = Cluster.objects.filter(name="old")
    await sync_to_async(old.update)(poll_claimed_until=now + timedelta(minutes=1))
    assert (await make_checks().readiness()).parts["following"] == "ok", "a worker has its cycle, which takes long"
