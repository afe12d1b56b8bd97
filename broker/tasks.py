"""The broker's scheduler as a Celery task: every worker of the queue `scheduler` drives, or stands by.

The task ends with its worker only. The worker itself sends it, checks every second whether it still runs, and sends it
again if not (its process died, Redis lost it). So beat has no part in it, and a new worker drives within a second.
Which of several workers drives is the broker's decision, by its lease.

    celery -A mqadmin worker -Q scheduler -c 1
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from typing import Any, cast

from celery import shared_task
from celery.signals import worker_init, worker_ready, worker_shutting_down
from celery.worker import state as worker_state
from django.conf import settings
from kombu.exceptions import OperationalError

from broker.driving import Drivers
from remoting.shutdown_signal import ShutdownSignal

logger = logging.getLogger(__name__)

QUEUE = "scheduler"
TASK = "broker.tasks.drive"
CHECK_INTERVAL_S = 1.0
# Celery discards a task that no worker has taken by then; its sender has sent another.
OFFER_EXPIRES_S = 10


# Celery dispatches this signal in its handlers of SIGTERM and SIGINT, and holds a lock for it. A second signal that
# interrupts the first handler there would wait for that lock for ever, were it not reentrant.
cast(Any, worker_shutting_down).lock = threading.RLock()


@shared_task(bind=True, name=TASK, queue=QUEUE, ignore_result=True, acks_late=False, max_retries=0)
def drive(self: Any) -> None:
    """Drives the schedulers of all brokers behind MQADMIN_NAMESRV until the worker shuts down."""
    name = f"{socket.gethostname()}/{os.getpid()}"
    asyncio.run(_drive_until_shutdown(settings.MQADMIN_NAMESRV, name, self.app.scheduler_shutdown))


async def _drive_until_shutdown(name_servers: str, name: str, shutdown: ShutdownSignal) -> None:
    async with Drivers(name_servers, name) as drivers:
        driving = asyncio.create_task(drivers.run(), name="drivers")
        stopping = asyncio.create_task(shutdown.wait(), name="shutdown")
        done, pending = await asyncio.wait((driving, stopping), return_when=asyncio.FIRST_COMPLETED)
        for loop_task in pending:
            loop_task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for loop_task in done:
            loop_task.result()


@worker_init.connect
def make_shutdown_signal(sender: Any, **_: Any) -> None:
    """Makes the signal before the worker forks its children, so that they inherit it."""
    sender.app.scheduler_shutdown = ShutdownSignal()


@worker_shutting_down.connect
def set_shutdown_signal(**_: Any) -> None:
    """Runs in a signal handler of the main process: see the rule in `remoting/shutdown_signal.py`."""
    shutdown: ShutdownSignal | None = getattr(drive.app, "scheduler_shutdown", None)
    if shutdown is not None:
        shutdown.set()


@worker_ready.connect
def keep_driving(sender: Any, **_: Any) -> None:
    """Offers the task now and every second. `sender` is the worker's consumer; its timer runs in the main process."""
    if QUEUE not in sender.app.amqp.queues.consume_from:
        return
    _offer(sender)
    sender.timer.call_repeatedly(CHECK_INTERVAL_S, _check, (sender,))
    if sender.hub is not None:
        # Celery's event loop looks whether to stop when something wakes it, else once a second.
        shutdown: ShutdownSignal = sender.app.scheduler_shutdown
        sender.hub.add_reader(shutdown.fileno(), sender.hub.remove_reader, shutdown.fileno())


def _check(consumer: Any) -> None:
    """Replaces a dead child at once (Celery itself looks for them every 5 s only), and offers the task."""
    if hasattr(consumer.pool, "maintain_pool"):
        consumer.pool.maintain_pool()
    _offer(consumer)


def _offer(consumer: Any) -> None:
    """Sends the task unless this worker has it, is busy, or is shutting down."""
    reserved = {request.name for request in tuple(worker_state.reserved_requests)}
    is_busy = len(worker_state.active_requests) >= consumer.pool.num_processes
    if TASK in reserved or is_busy or consumer.app.scheduler_shutdown.is_set:
        return
    try:
        drive.apply_async(expires=OFFER_EXPIRES_S, retry=False)
    except OperationalError as error:
        logger.warning("the scheduler's task cannot be sent: %s; trying again", error)
