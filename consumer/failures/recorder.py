"""Writes failures to the database from a thread of its own, so that consumption never waits for it.

What does not fit is dropped, the oldest first: while the database is away, or more fails than is worth reading. The
table keeps the newest `FAILURES_MAX`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from django.db import DatabaseError, connections, router
from django.db.utils import InterfaceError

from consumer.engine.failures import Failure
from consumer.failures.models import MessageFailure

logger = logging.getLogger(__name__)

# Failures that wait for the database, of one member.
WAITING_MAX = 1000
# Failures are written together, once in this time.
WRITE_INTERVAL_S = 1.0
# A thread with nothing to write ends, with its connection.
IDLE_S = 30.0
# Rows of the table, of all groups; and after how many written ones a member deletes the older ones.
FAILURES_MAX = 20_000
PRUNE_EVERY = 500

_TOLD = ("topic", "exception", "text", "listener", "member", "attempt", "failed_at")


class FailureRecorder:
    """Call it with a failure, on any thread. `write` and `delete_old` are for tests."""

    def __init__(
        self,
        cluster: str,
        group: str,
        write: Callable[[str, str, Sequence[Failure]], None] | None = None,
        delete_old: Callable[[], None] | None = None,
        *,
        interval_s: float = WRITE_INTERVAL_S,
        idle_s: float = IDLE_S,
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._write = write or write_failures
        self._delete_old = delete_old or prune
        self._interval_s = interval_s
        self._idle_s = idle_s
        self._waiting: deque[Failure] = deque(maxlen=WAITING_MAX)
        self._has_news = threading.Event()
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        self._written_count = 0
        self._is_away = False

    def __call__(self, failure: Failure) -> None:
        self._waiting.append(failure)
        self._has_news.set()
        with self._mutex:
            if self._thread is None:
                name = f"failures of {self._group}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            while self._has_news.wait(self._idle_s) or not self._ends():
                self._has_news.clear()
                self._write_waiting()
                time.sleep(self._interval_s)
        finally:
            connections.close_all()

    def _ends(self) -> bool:
        with self._mutex:
            if self._has_news.is_set():
                return False
            self._thread = None
            return True

    def _write_waiting(self) -> None:
        batch: list[Failure] = []
        while self._waiting:
            batch.append(self._waiting.popleft())
        try:
            self._write(self._cluster, self._group, batch)
            self._written_count += len(batch)
            if self._written_count >= PRUNE_EVERY:
                self._written_count = 0
                self._delete_old()
        except (DatabaseError, InterfaceError) as error:
            if not self._is_away:
                logger.warning("group %s: why messages failed is not kept in the database: %s", self._group, error)
            self._is_away = True
            connections.close_all()
        except Exception:
            logger.exception("group %s: failures were not written", self._group)
        else:
            self._is_away = False


def write_failures(cluster: str, group: str, failures: Sequence[Failure]) -> None:
    """Makes or renews the row of each message. Raises DatabaseError."""
    latest = {failure.message_id: failure for failure in failures}
    rows = [
        MessageFailure(
            cluster=cluster,
            group=group,
            message_id=failure.message_id,
            topic=failure.topic,
            exception=failure.reason.exception,
            text=failure.reason.text,
            listener=failure.reason.listener,
            member=failure.reason.member,
            attempt=failure.reason.attempt,
            failed_at=datetime.fromtimestamp(failure.failed_ms / 1000, UTC),
        )
        for failure in latest.values()
    ]
    MessageFailure.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["cluster", "group", "message_id"], update_fields=_TOLD
    )


def prune(keep: int = FAILURES_MAX) -> None:
    """Deletes all but the newest rows. Raises DatabaseError."""
    database = router.db_for_write(MessageFailure)
    newest = MessageFailure.objects.using(database).order_by("-failed_at").values_list("failed_at", flat=True)
    boundary = next(iter(newest[keep : keep + 1]), None)
    if boundary is not None:
        MessageFailure.objects.using(database).filter(failed_at__lte=boundary).delete()
