"""Tells a consumer instance that a Celery task which it sent has ended: over Celery's own transport, without a backend.

    instance                            Celery worker
    sends the task with two headers  →  runs it, as any other
    reads its reply queue            ←  signal task_success or task_failure: a reply to the queue that the header names

A task that is retried by itself ends with its last try. One that a worker took along when it died, that was revoked,
expired or rejected, never ends here: the instance stops waiting for it after a time (`task_listener.py`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from typing import Any

from celery import Celery
from celery.signals import task_failure, task_success
from kombu import Exchange, Queue
from kombu.exceptions import OperationalError

from remoting.wire.error_text import error_text

logger = logging.getLogger(__name__)

REPLY_TO, REPLY_ID = "mq_reply_to", "mq_reply_id"
# A reply queue whose instance is gone, and a reply that nobody reads, are deleted by a transport that can.
QUEUE_EXPIRES_S = 3600
DRAIN_S = 1.0
RECONNECT_AFTER_S = 1.0
ERROR_CHARS_MAX = 500
# A reply that cannot be sent for so long is given up: the message comes again.
SEND_RETRIES = {"max_retries": 5, "interval_start": 0.2, "interval_step": 0.5, "interval_max": 2}


class TaskFailed(Exception):
    """The task of a message raised; the text is the exception's class and first words."""


class TaskReplies:
    """The reply queue of one instance, read in a thread. Made and used on the instance's event loop.

    The thread ends when the loop is closed.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self.queue = f"mq-replies.{uuid.uuid4().hex}"
        threading.Thread(target=self._read, name="task replies", daemon=True).start()

    def expect(self, reply_id: str) -> asyncio.Future[None]:
        """Returns a future that is done when the task has ended. It raises TaskFailed."""
        future = self._loop.create_future()
        self._waiting[reply_id] = future
        future.add_done_callback(lambda _: self._waiting.pop(reply_id, None))
        return future

    def _read(self) -> None:
        queue = Queue(
            self.queue, Exchange(""), self.queue, durable=False, auto_delete=True, expires=QUEUE_EXPIRES_S, no_ack=True
        )
        while not self._loop.is_closed():
            try:
                with (
                    self._app.connection_for_read() as connection,
                    connection.Consumer([queue], callbacks=[self._received], accept=["json"]),
                ):
                    self._drain(connection)
            except Exception as error:
                logger.warning("replies of tasks cannot be read, next try in %g s: %s", RECONNECT_AFTER_S, error)
                threading.Event().wait(RECONNECT_AFTER_S)

    def _drain(self, connection: Any) -> None:
        while not self._loop.is_closed():
            try:
                connection.drain_events(timeout=DRAIN_S)
            except TimeoutError:
                pass

    def _received(self, body: dict[str, str], _message: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, body["id"], body["error"])
        except RuntimeError:  # the loop was closed just now
            pass

    def _settle(self, reply_id: str, error: str) -> None:
        future = self._waiting.get(reply_id)
        if future is None or future.done():
            return
        if error:
            future.set_exception(TaskFailed(error))
        else:
            future.set_result(None)


@task_success.connect(dispatch_uid="consumer: reply of a task")
def reply_success(sender: Any, **_: Any) -> None:
    _reply(sender, "")


@task_failure.connect(dispatch_uid="consumer: reply of a task")
def reply_failure(sender: Any, exception: BaseException, **_: Any) -> None:
    _reply(sender, f"{type(exception).__name__}: {error_text(exception)}"[:ERROR_CHARS_MAX])


def _reply(task: Any, error: str) -> None:
    """Runs in the process that ran the task; nothing for a task that no listener sent."""
    headers = task.request.headers or {}
    if REPLY_TO not in headers:
        return
    try:
        with task.app.producer_or_acquire() as producer:
            producer.publish(
                {"id": headers[REPLY_ID], "error": error},
                exchange="",
                routing_key=headers[REPLY_TO],
                serializer="json",
                delivery_mode="transient",
                expiration=QUEUE_EXPIRES_S,
                retry=True,
                retry_policy=SEND_RETRIES,
            )
    except OperationalError as failure:
        logger.warning("task %s: its end cannot be told, so its message comes again: %s", task.name, failure)
