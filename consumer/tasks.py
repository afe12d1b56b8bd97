"""The Celery tasks of hosting, and what a loops worker does when it starts and stops.

    celery -A mqadmin worker -Q loops -c 8     runs up to eight instances
    celery -A mqadmin worker -Q jobs           supervises
    celery -A mqadmin beat                     sends `supervise` every 2 s

Supervision chooses the worker of an instance, so each loops worker also takes a queue of its own, "loops.<node>"; the
instances go there alone. Tasks are acknowledged early and never prefetched: a lease row says which worker runs which
instance, Celery's acknowledgements decide nothing.
"""

from __future__ import annotations

import logging
import threading
import uuid
from functools import partial
from typing import Any, cast
from uuid import UUID

from celery import shared_task
from celery.signals import (
    beat_init,
    celeryd_after_setup,
    worker_before_create_process,
    worker_init,
    worker_process_init,
    worker_ready,
    worker_shutting_down,
)
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from kombu.exceptions import OperationalError

from consumer import (
    inbox,
    producer,
    task_replies,  # noqa: F401 - its receivers, in each Celery worker
)
from consumer.conf import jobs_queue, loops_queue, once_kept_for
from consumer.delivery import writing as delivery_writing
from consumer.hosting import instance, schedule, supervisor
from consumer.hosting.declared import write_down
from consumer.hosting.instance import StopSignals
from consumer.hosting.leases import Worker
from consumer.hosting.loops_worker import WorkerRegistration
from consumer.hosting.pool_process import hold_sigterm, leave_sigterm_to_main, let_sigterm_in
from consumer.hosting.shared_memory import keep_memory_shared
from consumer.hosting.supervision import OFFER_EXPIRES_S
from consumer.hosting.thread_pool import end_without_killing
from consumer.listener import registry
from consumer.outbox.schedule import DELIVERY_TASK
from remoting.shutdown_signal import ShutdownSignal

logger = logging.getLogger(__name__)


# Celery dispatches this signal in its handlers of SIGTERM and SIGINT, and holds a lock for it. A second signal that
# interrupts the first handler there would wait for that lock for ever, were it not reentrant.
cast(Any, worker_shutting_down).lock = threading.RLock()


class LoopsWorkerProcess:
    """What the worker's main process makes before it forks: its children find it on the Celery application."""

    def __init__(self) -> None:
        self.boot = uuid.uuid4()
        self.stop = StopSignals(shutdown=ShutdownSignal(), cold=ShutdownSignal())
        self.registration: WorkerRegistration | None = None


@shared_task(bind=True, name="consumer.tasks.host_instance", acks_late=False, ignore_result=True, max_retries=0)
def host_instance(self: Any, lease_id: str) -> None:
    """Runs one consumer instance until its lease asks it to stop or its worker shuts down, after hours or weeks."""
    process: LoopsWorkerProcess | None = getattr(self.app, "loops_worker", None)
    if process is None:  # a pool that spawns, billiard's default on macOS
        raise ImproperlyConfigured("consumer instances need a worker with forked processes or `-P threads`")
    worker = Worker(node=self.request.hostname, boot=process.boot)
    instance.host(UUID(lease_id), worker, registry.groups, process.stop)


@shared_task(name=schedule.TASK, acks_late=False, ignore_result=True, max_retries=0)
def supervise() -> None:
    """Brings the number of running instances to the wanted one."""
    supervisor.supervise(registry.groups, _offer)
    supervisor.prune()


@shared_task(name=DELIVERY_TASK, acks_late=False, ignore_result=True, max_retries=0)
def deliver_outbox() -> None:
    """Sends what waits in the outbox; of several at once one does, for each cluster."""
    producer.deliver_outbox()


@shared_task(name="consumer.tasks.forget_consumed", acks_late=False, ignore_result=True, max_retries=0)
def forget_consumed() -> None:
    """Deletes the keys of messages that were consumed once, CONSUMER_ONCE_DAYS ago or earlier."""
    before = timezone.now() - once_kept_for()
    for database in inbox.databases(registry.groups.values()):
        logger.info("forgot %d consumed messages in the database %s", inbox.forget(before, database), database)


@shared_task(name="consumer.tasks.forget_deliveries", acks_late=False, ignore_result=True, max_retries=0)
def forget_deliveries() -> None:
    """Deletes how long deliveries took in hours that no report reads any more."""
    delivery_writing.forget(timezone.now())


def _offer(lease_id: UUID, node: str) -> None:
    """Sends the task that hosts a lease. If the task gets lost, supervision ends the lease and makes another."""
    queue = _own_queue(node)
    try:
        host_instance.apply_async(args=(str(lease_id),), queue=queue, expires=OFFER_EXPIRES_S, retry=False)
    except OperationalError as error:
        logger.warning("lease %s could not be offered to a worker: %s", lease_id, error)


def _own_queue(node: str) -> str:
    return f"{loops_queue()}.{node}"


@celeryd_after_setup.connect
def take_own_queue(sender: str, instance: Any, **_: Any) -> None:
    """Adds the worker's own queue to those that it was started with. `sender` is the node name."""
    queues = instance.app.amqp.queues
    if loops_queue() in queues.consume_from:
        queues.select_add(_own_queue(sender))


@worker_init.connect
def prepare(sender: Any, **_: Any) -> None:
    """Runs before the worker forks its children. Raises SystemExit when the declarations of listeners are wrong.

    Celery throws away what Django's system checks find.
    """
    if registry.faults:
        faults = "\n".join(f"({fault.id}) {fault.text}" for fault in registry.faults)
        raise SystemExit(f"this worker does not start, its listeners are declared wrong:\n{faults}")
    sender.app.loops_worker = LoopsWorkerProcess()
    if _hosts_instances():
        from consumer.hosting.unread_results import read_results_to_the_end  # for workers alone

        read_results_to_the_end()


@worker_before_create_process.connect
def prepare_to_fork(**_: Any) -> None:
    """Runs in a worker's main process before each fork, of any queue."""
    hold_sigterm()
    if _hosts_instances():
        keep_memory_shared()


def _hosts_instances() -> bool:
    """Tells whether this worker does. Other workers of a project are its own to tune."""
    return loops_queue() in host_instance.app.amqp.queues.consume_from


@worker_process_init.connect
def prepare_pool_process(**_: Any) -> None:
    """Runs in each process of a prefork pool, of any queue."""
    process: LoopsWorkerProcess | None = getattr(host_instance.app, "loops_worker", None)
    if process is not None:
        leave_sigterm_to_main(process.stop)
    let_sigterm_in()


@worker_ready.connect
def register(sender: Any, **_: Any) -> None:
    """Registers a worker of the loops queue as a host of instances. `sender` is the worker's Celery consumer."""
    if loops_queue() not in sender.app.amqp.queues.consume_from:
        return
    process: LoopsWorkerProcess = sender.app.loops_worker
    if process.registration is None:  # Celery says ready again after every reconnect
        forks = "prefork" in type(sender.pool).__module__
        if not forks:
            end_without_killing(process.stop)
        process.registration = WorkerRegistration(
            Worker(sender.hostname, process.boot),
            sender.pool.num_processes,
            process.stop.shutdown,
            partial(_registered, Worker(sender.hostname, process.boot)),
            _wake_supervision,
            forks=forks,
        )
        process.registration.start()


def _registered(worker: Worker, left_count: int) -> None:
    write_down(worker, registry.groups)
    if left_count:
        logger.warning("%d instances of this worker's predecessor are lost", left_count)
    _wake_supervision()


def _wake_supervision() -> None:
    """Runs supervision now instead of at beat's next tick: what a predecessor ran is missing, or this worker stops."""
    try:
        supervise.apply_async(queue=jobs_queue(), expires=schedule.EXPIRES_S, retry=False)
    except OperationalError as error:
        logger.info("supervision could not be woken: %s", error)


@beat_init.connect
def schedule_regular_tasks(sender: Any, **_: Any) -> None:
    """`sender` is beat's service."""
    schedule.complete_schedule(sender.scheduler)


@worker_shutting_down.connect
def stop_instances(how: str = "", **_: Any) -> None:
    """Runs in a signal handler of the main process: see the rule in `remoting/shutdown_signal.py`.

    The instances wait for the signal on their event loops, the registration in its thread.
    """
    process: LoopsWorkerProcess | None = getattr(host_instance.app, "loops_worker", None)
    if process is not None:
        if how == "Cold":
            process.stop.cold.set()
        process.stop.shutdown.set()
