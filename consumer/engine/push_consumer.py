"""One member of a consumer group (Java `DefaultMQPushConsumer`), as Django code and tests use it.

Checks everything when it is made, and opens connections and threads only in `start()`: a consumer that was made before
a fork is harmless after it. Network trouble never ends it; it logs what is wrong and tries again.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum

from consumer.engine.clock import Clock, now_ms
from consumer.engine.config import ConsumerConfig
from consumer.engine.failures import RecordFailure
from consumer.engine.listening import Listener
from consumer.engine.namespacing import in_namespace
from consumer.engine.rebalancer import QueuesChanged
from consumer.engine.running_consumer import RunningConsumer
from consumer.engine.statistics import RecordDelivery
from consumer.engine.subscriptions import subscribe
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import ConsumerRunningInfo
from remoting.wire.names import with_namespace


class ServiceState(Enum):
    """Java's, with what it means for `start()`, which works once."""

    CREATE_JUST = "was not started"
    RUNNING = "runs"
    SHUTDOWN_ALREADY = "was stopped"
    START_FAILED = "failed to start"


class PushConsumer:
    """`await start()`, later `await stop()`. `listeners`: one per topic.

    `at_thread_end` runs in each consuming thread before it ends; `queues_changed` on the event loop, after a rebalance
    that changed the queues of a topic, `record_failure` after each failed attempt at a message, and `record_delivery`
    after messages were consumed.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        listeners: Mapping[str, Listener],
        *,
        at_thread_end: Callable[[], None] | None = None,
        queues_changed: QueuesChanged | None = None,
        record_failure: RecordFailure | None = None,
        record_delivery: RecordDelivery | None = None,
        clock: Clock = now_ms,
    ) -> None:
        """Raises MessageError for a group, topic or tag expression that RocketMQ would not take."""
        self.config = replace(config, group=with_namespace(config.namespace, config.group))
        self.listeners = dict(listeners)
        self._at_thread_end = at_thread_end
        self._queues_changed = queues_changed
        self._record_failure = record_failure
        self._record_delivery = record_delivery
        self._clock = clock
        self._pid = os.getpid()
        self._running: RunningConsumer | None = None
        self.state = ServiceState.CREATE_JUST
        self._change = asyncio.Lock()
        self._listeners = in_namespace(config.namespace, self.listeners)
        self._expressions = {topic: listener.expression for topic, listener in self._listeners.items()}
        subscribe(self.config.group, self._expressions, 0)

    @property
    def client_id(self) -> str:
        """Returns "" before `start()`."""
        return self._running.client_id if self._running else ""

    @property
    def queues(self) -> list[MessageQueue]:
        """Returns the message queues that this member owns now."""
        return self._running.queues if self._running else []

    def suspend(self, reason: str = "") -> None:
        """Stops pulling until `resume(reason)`; what was pulled before is consumed.

        The member stays in its group and keeps its queues. Each reason counts by itself. Call on the event loop.
        """
        self._started().suspension.suspend(reason)

    def resume(self, reason: str = "") -> None:
        """Takes `reason` back; pulls again at once when it was the last."""
        self._started().suspension.resume(reason)

    @property
    def suspended(self) -> tuple[str, ...]:
        """Returns the reasons for which nothing is pulled now."""
        return self._running.suspension.reasons if self._running else ()

    def running_info(self) -> ConsumerRunningInfo:
        return self._started().running_info()

    async def start(self) -> None:
        """Returns soon; the first queues follow when brokers have answered.

        Raises RuntimeError when it was started before or was made before a fork, and SubscriptionRefused.
        """
        async with self._change:
            if self.state is not ServiceState.CREATE_JUST:
                raise RuntimeError(
                    f"this consumer of group {self.config.group!r} was started before and {self.state.value}:"
                    " make another"
                )
            if os.getpid() != self._pid:
                raise RuntimeError("this consumer was made before a fork: make it in the process that runs it")
            self.state = ServiceState.START_FAILED  # until it has not
            running = RunningConsumer(
                self.config,
                self._listeners,
                subscribe(
                    self.config.group,
                    self._expressions,
                    self._clock(),
                    is_broadcasting=self.config.is_broadcasting,
                ),
                client_id=_new_client_id(),
                clock=self._clock,
                at_thread_end=self._at_thread_end,
                queues_changed=self._queues_changed,
                record_failure=self._record_failure,
                record_delivery=self._record_delivery,
            )
            await running.start()
            self._running = running
            self.state = ServiceState.RUNNING

    async def stop(self) -> None:
        """Lets running listeners finish, commits the offsets, and leaves the group. Does nothing unless it runs."""
        async with self._change:
            if self.state is ServiceState.RUNNING:
                self.state = ServiceState.SHUTDOWN_ALREADY
                await self._started().stop()

    def _started(self) -> RunningConsumer:
        if self._running is None:
            raise RuntimeError(f"this consumer of group {self.config.group!r} was not started")
        return self._running


def _new_client_id() -> str:
    """Returns `host@pid#random`: containers share addresses and pid 1, forked processes what was made before."""
    return f"{socket.gethostname()}@{os.getpid()}#{secrets.token_hex(6)}"
