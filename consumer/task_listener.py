"""A Celery task as a listener, for projects that have tasks already: each message becomes a task.

    # shop/listeners.py
    task_listener(bill, group="billing", topic="orders", arguments=lambda message: {"order": message.json()["id"]})

The task runs in the project's own Celery workers. The message is consumed when the task has ended: when it succeeded,
the offset goes on; when it raised, the message is retried as after any listener, and after the last retry it is a dead
letter. `threads` of the group bounds how many tasks of an instance are under way. A task is not awaited for longer than
`task_timeout_s`, for instance because its worker died: the message is retried then, so a task may run twice for it.
"""

from __future__ import annotations

import asyncio
import uuid
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Unpack

from celery import Task

from consumer.engine.message import Message
from consumer.group_key import DEFAULT_CLUSTER
from consumer.listener import listener
from consumer.options import OPTIONS, Options
from consumer.task_replies import REPLY_ID, REPLY_TO, TaskReplies

TASK_TIMEOUT_S = 600.0

Arguments = Callable[[Message[Any]], Mapping[str, Any]]


class TaskSilent(Exception):
    """A task did not end in time, or nobody told of its end."""


class TaskListener:
    """The listener that `task_listener` declares: sends the task, and waits until it has ended."""

    def __init__(
        self, task: Task[Any, Any], arguments: Arguments | None, timeout_s: float, send_options: Mapping[str, Any]
    ) -> None:
        self._task = task
        self._arguments = arguments
        self._timeout_s = timeout_s
        self._send_options = dict(send_options)
        self._replies: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, TaskReplies] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"task {self._task.name}"

    async def __call__(self, message: Message[Any]) -> None:
        """Raises TaskFailed, TaskSilent, and what sending raises."""
        replies = self._replies_here()
        reply_id = uuid.uuid4().hex
        args, kwargs = ((message.json(),), {}) if self._arguments is None else ((), dict(self._arguments(message)))
        send = partial(
            self._task.apply_async,
            args=args,
            kwargs=kwargs,
            headers={REPLY_TO: replies.queue, REPLY_ID: reply_id},
            retry=False,
            **self._send_options,
        )
        ended = replies.expect(reply_id)
        try:
            await asyncio.to_thread(send)
            async with asyncio.timeout(self._timeout_s):
                await ended
        except TimeoutError:
            raise TaskSilent(f"task {self._task.name} did not end within {self._timeout_s:g} s") from None
        finally:
            ended.cancel()

    def _replies_here(self) -> TaskReplies:
        """Each instance has a reply queue of its own: with a pool of threads several share this object."""
        loop = asyncio.get_running_loop()
        if loop not in self._replies:
            self._replies[loop] = TaskReplies(self._task.app)
        return self._replies[loop]


def task_listener(
    task: Task[Any, Any],
    *,
    group: str,
    topic: str,
    cluster: str = DEFAULT_CLUSTER,
    arguments: Arguments | None = None,
    task_timeout_s: float = TASK_TIMEOUT_S,
    send_options: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> None:
    """Declares a Celery task as the listener of `group` on `topic`; `options` are those of `listener`.

    `arguments` makes the task's keyword arguments of a message; without it the task gets the body, parsed as JSON, as
    its only argument. `send_options` go to `apply_async`: queue, priority and so on. Raises ValueError for a
    `task_timeout_s` that is not shorter than the group's `consume_timeout_s`, after which messages come again anyhow.
    """
    consume_timeout_s = options.get("consume_timeout_s", OPTIONS["consume_timeout_s"].default)
    if not 0 < task_timeout_s < consume_timeout_s:
        raise ValueError(
            f"task_listener({task.name!r}): task_timeout_s is {task_timeout_s!r}; it must be above 0 and below the"
            f" group's consume_timeout_s, {consume_timeout_s!r}"
        )
    called = TaskListener(task, arguments, task_timeout_s, send_options or {})
    listener(group=group, topic=topic, cluster=cluster, **options)(called)
