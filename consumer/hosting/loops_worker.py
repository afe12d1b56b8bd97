"""The `LoopsWorker` row of a Celery worker that hosts instances: its slots, its heartbeat, and that it is stopping.

A thread of the worker's main process writes it, so that a slow database never holds up Celery. It keeps no connection
open between two heartbeats, and no pool: the worker may fork another child at any time, and neither an open SQLite file
nor a socket to PostgreSQL must be inherited.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, cast

from django.db import Error as DatabaseError
from django.db import connections
from django.utils import timezone

from consumer.hosting import leases
from consumer.hosting.instance import HAND_OVER_LOOK_S, HAND_OVER_S
from consumer.hosting.leases import Worker
from consumer.hosting.machine import is_process_gone, process_start, this_machine
from consumer.hosting.supervision import SILENT_AFTER
from consumer.models import DesiredState, InstanceLease, LoopsWorker
from remoting.shutdown_signal import ShutdownSignal

logger = logging.getLogger(__name__)

HEARTBEAT_INTERVAL_S = 5.0
RETRY_AFTER_S = 1.0
# Workers that are started together register one after another; supervision is woken when all had time to.
SETTLE_S = 1.0


def register(worker: Worker, slots: int) -> int:
    """Writes the worker's row, and ends the leases that a predecessor of its name left open; returns their number."""
    now = timezone.now()
    LoopsWorker.objects.update_or_create(
        node=worker.node,
        defaults={
            "boot": worker.boot,
            "machine": this_machine(),
            "pid": os.getpid(),
            "process_start": process_start(os.getpid()) or 0,
            "slots": slots,
            "is_stopping": False,
            "is_draining": False,
            # What its predecessor's code declared; it is compared with other workers once it has written its own down.
            "declared": {},
            "started_at": now,
            "heartbeat_at": now,
        },
    )
    left = InstanceLease.objects.filter(worker=worker.node, state__in=leases.ALIVE).exclude(worker_boot=worker.boot)
    return leases.end_all(left.values_list("id", flat=True), "its worker was restarted")


def heartbeat(worker: Worker) -> None:
    LoopsWorker.objects.filter(node=worker.node, boot=worker.boot).update(heartbeat_at=timezone.now())


def mark_stopping(worker: Worker) -> None:
    """Has supervision start the worker's instances elsewhere, and place none on it."""
    LoopsWorker.objects.filter(node=worker.node, boot=worker.boot).update(is_stopping=True)


def alive_workers() -> list[LoopsWorker]:
    """Returns the workers that live, those that are about to stop included."""
    alive = LoopsWorker.objects.filter(heartbeat_at__gt=timezone.now() - SILENT_AFTER)
    return [worker for worker in alive if not is_process_gone(worker.machine, worker.pid, worker.process_start)]


def stop_what_nobody_takes(worker: Worker) -> bool:
    """Asks the instances of a stopping worker to stop when no other worker takes any; returns whether none is left."""
    running = InstanceLease.objects.filter(
        worker=worker.node, worker_boot=worker.boot, state__in=leases.ALIVE, desired_state=DesiredState.RUN
    )
    if not any(not other.is_stopping and other.node != worker.node for other in alive_workers()):
        leases.ask_to_stop(running)
    return not running.exists()


class WorkerRegistration:
    """Keeps the row in a thread until `shutdown` is set, and marks it as stopping then.

    `registered` is called soon after the row is written, with the number of leases that a predecessor left, `stopping`
    when it is marked: instances are missing elsewhere. Those of this worker go on until supervision stops them.
    `forks`: the worker's pool makes processes; else other threads of this process use the database too.
    """

    def __init__(
        self,
        worker: Worker,
        slots: int,
        shutdown: ShutdownSignal,
        registered: Callable[[int], None],
        stopping: Callable[[], None],
        *,
        forks: bool,
    ) -> None:
        self._worker = worker
        self._slots = slots
        self._shutdown = shutdown
        self._registered = registered
        self._stopping = stopping
        self._is_handed_over = False
        self._forks = forks
        self._thread = threading.Thread(target=self._keep, name="loops worker row", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _keep(self) -> None:
        is_registered = False
        while not self._shutdown.is_set:
            if not is_registered:
                is_registered = self._try(self._register)
            else:
                self._try(lambda: heartbeat(self._worker))
            self._shutdown.wait_in_thread(HEARTBEAT_INTERVAL_S if is_registered else RETRY_AFTER_S)
        if self._try(lambda: mark_stopping(self._worker)):
            self._hand_over()

    def _hand_over(self) -> None:
        """Returns when no instance is left to stop, or the database fails: then each stops by itself."""
        self._stopping()
        deadline_s = time.monotonic() + HAND_OVER_S
        while self._try(self._stop_what_nobody_takes) and not self._is_handed_over and time.monotonic() < deadline_s:
            time.sleep(HAND_OVER_LOOK_S)

    def _stop_what_nobody_takes(self) -> None:
        self._is_handed_over = stop_what_nobody_takes(self._worker)

    def _register(self) -> None:
        left_count = register(self._worker, self._slots)
        self._close_connections()
        self._shutdown.wait_in_thread(SETTLE_S)
        self._registered(left_count)

    def _try(self, step: Callable[[], object]) -> bool:
        """Returns False, and logs, when the database refuses."""
        try:
            step()
        except DatabaseError as error:
            logger.warning("worker %s: its row cannot be written: %s", self._worker.node, error)
            return False
        finally:
            self._close_connections()
        return True

    def _close_connections(self) -> None:
        connections.close_all()
        for connection in connections.all(initialized_only=True) if self._forks else ():
            if connection.settings_dict["OPTIONS"].get("pool"):
                cast(Any, connection).close_pool()
