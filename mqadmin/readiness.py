"""`/readyz`: whether this install can do its work, and which part of it cannot.

All parts are asked at once, each in a thread; one that does not answer within ANSWERS_WITHIN_S counts as not ready. The
answer is kept for KEPT_S and asked for by one request at a time, so probes never pile up behind a database that hangs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from redis import Redis, RedisError

from mqadmin.clusters.models import POLLED_KINDS, Cluster, FollowerLease

ANSWERS_WITHIN_S = 5.0
KEPT_S = 1.0
REDIS_TIMEOUT_S = 2.0
# The follower renews its lease every 5 s; SQLite's one writer may starve for 6 s, and a restart takes some more.
FOLLOWED_WITHIN = timedelta(seconds=45)
# Four cycles of polling.
POLLED_WITHIN = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Readiness:
    """`parts`: name → "ok", or in words why it is not ready."""

    parts: Mapping[str, str]

    @property
    def is_ready(self) -> bool:
        return all(words == "ok" for words in self.parts.values())

    @property
    def text(self) -> str:
        return "".join(f"{name}: {words}\n" for name, words in self.parts.items())


class ReadinessChecks:
    """Used on the event loop."""

    def __init__(self, checks: Mapping[str, Callable[[], str]], within_s: float = ANSWERS_WITHIN_S) -> None:
        self._checks = checks
        self._within_s = within_s
        self._running: asyncio.Task[Readiness] | None = None
        self._kept: Readiness | None = None
        self._kept_until_s = -1.0

    async def readiness(self) -> Readiness:
        if self._kept is not None and time.monotonic() < self._kept_until_s:
            return self._kept
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._check(), name="readiness")
        return await asyncio.shield(self._running)

    async def _check(self) -> Readiness:
        words = await asyncio.gather(*(self._answer(check) for check in self._checks.values()))
        self._kept = Readiness(dict(zip(self._checks, words, strict=True)))
        self._kept_until_s = time.monotonic() + KEPT_S
        return self._kept

    async def _answer(self, check: Callable[[], str]) -> str:
        try:
            async with asyncio.timeout(self._within_s):
                words: str = await database_sync_to_async(check, thread_sensitive=False)()
        except TimeoutError:
            return f"no answer within {self._within_s:g} s"
        return words


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "does not answer; see DATABASE_URL"
    return "ok"


class _Migrations:
    """Those that were found applied once stay applied, so they are read until then only."""

    def __init__(self) -> None:
        self._are_applied = False

    def __call__(self) -> str:
        if self._are_applied:
            return "ok"
        try:
            executor = MigrationExecutor(connection)
            missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except DatabaseError:
            return "not known: the database does not answer"
        if missing:
            return f"{len(missing)} are not applied; run manage.py migrate"
        self._are_applied = True
        return "ok"


def _redis() -> str:
    options = {"socket_timeout": REDIS_TIMEOUT_S, "socket_connect_timeout": REDIS_TIMEOUT_S}
    try:
        with Redis.from_url(settings.REDIS_URL, **options) as client:
            client.ping()
    except (RedisError, OSError):
        return "does not answer; see REDIS_URL"
    return "ok"


def _following() -> str:
    """Says whether somebody asks the clusters, not whether they answer: a cluster that is down is no fault of ours."""
    now = timezone.now()
    try:
        clusters = list(Cluster.objects.only("kind", "name", "last_tried_at", "poll_claimed_until"))
        renewed_at = FollowerLease.objects.values_list("renewed_at", flat=True).first()
    except DatabaseError:
        return "not known: the database does not answer"
    is_followed = renewed_at is not None and now - renewed_at < FOLLOWED_WITHIN
    if any(one.kind not in POLLED_KINDS for one in clusters) and not is_followed:
        return "nobody follows the clusters; is a worker of the queue following running, with beat and jobs?"
    asked = [one.asked_until(now) for one in clusters if one.kind in POLLED_KINDS]
    late = [until for until in asked if until is None or now - until > POLLED_WITHIN]
    return f"{len(late)} clusters are not polled; is a worker of the queue jobs running, with beat?" if late else "ok"


def make_checks() -> ReadinessChecks:
    return ReadinessChecks(
        {"database": _database, "migrations": _Migrations(), "redis": _redis, "following": _following}
    )
