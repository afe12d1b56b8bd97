"""One member of a consumer group (Java `DefaultMQPushConsumer`), as Django code and tests use it.

Checks everything when it is made, and opens connections and threads only in `start()`: a consumer that was made before
a fork is harmless after it. Network trouble never ends it; it logs what is wrong and tries again.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Mapping

from consumer.engine.clock import Clock, now_ms
from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.running_consumer import RunningConsumer
from consumer.engine.subscriptions import subscribe
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import ConsumerRunningInfo


class PushConsumer:
    """`await start()`, later `await stop()`, once each. `listeners`: one per topic.

    `at_thread_end` runs in each consuming thread before it ends.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        listeners: Mapping[str, Listener],
        *,
        at_thread_end: Callable[[], None] | None = None,
        clock: Clock = now_ms,
    ) -> None:
        """Raises MessageError for a group, topic or tag expression that RocketMQ would not take."""
        self.config = config
        self.listeners = dict(listeners)
        self._at_thread_end = at_thread_end
        self._clock = clock
        self._pid = os.getpid()
        self._running: RunningConsumer | None = None
        self._tags = {topic: listener.tags for topic, listener in self.listeners.items()}
        subscribe(config.group, self._tags, 0)

    @property
    def client_id(self) -> str:
        """Returns "" before `start()`."""
        return self._running.client_id if self._running else ""

    @property
    def queues(self) -> list[MessageQueue]:
        """Returns the message queues that this member owns now."""
        return self._running.queues if self._running else []

    def running_info(self) -> ConsumerRunningInfo:
        return self._started().running_info()

    async def start(self) -> None:
        """Returns at once; the first queues follow when brokers have answered."""
        if self._running is not None:
            raise RuntimeError(f"this consumer of group {self.config.group!r} was started before")
        if os.getpid() != self._pid:
            raise RuntimeError("this consumer was made before a fork: make it in the process that runs it")
        self._running = RunningConsumer(
            self.config,
            self.listeners,
            subscribe(self.config.group, self._tags, self._clock()),
            client_id=_new_client_id(),
            clock=self._clock,
            at_thread_end=self._at_thread_end,
        )
        await self._running.start()

    async def stop(self) -> None:
        """Lets running listeners finish, commits the offsets, and leaves the group."""
        await self._started().stop()

    def _started(self) -> RunningConsumer:
        if self._running is None:
            raise RuntimeError(f"this consumer of group {self.config.group!r} was not started")
        return self._running


def _new_client_id() -> str:
    """Returns `host@pid#random`: containers share addresses and pid 1, forked processes what was made before."""
    return f"{socket.gethostname()}@{os.getpid()}#{secrets.token_hex(6)}"
