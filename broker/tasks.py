"""The broker's scheduler as a Celery task: every worker of the queue `scheduler` drives, or stands by.

The task is long: it ends with its worker. The worker itself sends it, looks every second whether it is still running
and sends it again when it isn't (its process died, Redis lost it). So beat has no part in it, and a fresh worker drives
within a second. Which of several workers drives is the broker's decision, by its lease.

    celery -A mqadmin worker -Q scheduler -c 1
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_ready, worker_shutting_down
from celery.worker import state as worker_state
from django.conf import settings
from kombu.exceptions import OperationalError

from broker.driving import Drivers
from broker.stop_bell import StopBell

logger = logging.getLogger(__name__)

QUEUE = "scheduler"
TASK = "broker.tasks.drive"
LOOK_INTERVAL_S = 1.0
# A task that no worker took by then is void: its worker has sent another.
OFFER_EXPIRES_S = 10


@shared_task(bind=True, name=TASK, queue=QUEUE, ignore_result=True, acks_late=False, max_retries=0)
def drive(self: Any) -> None:
    """Drives the schedulers of all brokers behind MQADMIN_NAMESRV until the worker stops."""
    name = f"{socket.gethostname()}/{os.getpid()}"
    asyncio.run(_drive_until_rung(settings.MQADMIN_NAMESRV, name, self.app.stop_bell))


async def _drive_until_rung(name_servers: str, name: str, bell: StopBell) -> None:
    async with Drivers(name_servers, name) as drivers:
        driving = asyncio.create_task(drivers.run(), name="drivers")
        rung = asyncio.create_task(bell.wait(), name="stop bell")
        done, pending = await asyncio.wait((driving, rung), return_when=asyncio.FIRST_COMPLETED)
        for loop_task in pending:
            loop_task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for loop_task in done:
            loop_task.result()


@worker_init.connect
def hang_up_bell(sender: Any, **_: Any) -> None:
    """Before the worker forks its children, so that they inherit it."""
    sender.app.stop_bell = StopBell()


@worker_shutting_down.connect
def ring_bell(**_: Any) -> None:
    """Celery says it in a signal handler of the main process, and only there."""
    bell = getattr(drive.app, "stop_bell", None)
    if bell is not None:
        bell.ring()


@worker_ready.connect
def keep_driving(sender: Any, **_: Any) -> None:
    """`sender` is the worker's consumer; its timer runs in the main process."""
    if QUEUE not in sender.app.amqp.queues.consume_from:
        return
    _offer(sender)
    sender.timer.call_repeatedly(LOOK_INTERVAL_S, _look, (sender,))
    if sender.hub is not None:
        sender.app.stop_bell.wake(sender.hub)


def _look(consumer: Any) -> None:
    """Celery itself looks for dead children only every 5 s."""
    if hasattr(consumer.pool, "maintain_pool"):
        consumer.pool.maintain_pool()
    _offer(consumer)


def _offer(consumer: Any) -> None:
    """Sends the task unless this worker has it, is busy, or is stopping."""
    held = {request.name for request in tuple(worker_state.reserved_requests)}
    is_busy = len(worker_state.active_requests) >= consumer.pool.num_processes
    if TASK in held or is_busy or consumer.app.stop_bell.has_rung:
        return
    try:
        drive.apply_async(expires=OFFER_EXPIRES_S, retry=False)
    except OperationalError as error:
        logger.warning("the scheduler's task cannot be sent: %s; trying again", error)
