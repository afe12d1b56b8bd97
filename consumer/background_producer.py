"""A producer for code without an event loop of its own: one per process, cluster and group, in a thread.

Made at the first use; a forked process makes its own, since neither threads nor sockets survive a fork.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from consumer.conf import namesrv
from consumer.group_key import DEFAULT_CLUSTER
from consumer.producer_settings import producer_settings
from remoting.client.connections import CLOSE_GRACE_S
from remoting.client.event_loop_thread import EventLoopThread
from remoting.client.instance import ClientInstance
from remoting.client.producer import Producer
from remoting.client.trace import TraceDispatcher

T = TypeVar("T")

CLOSE_TIMEOUT_S = 3.0
# With the time for the connections; the loop of a thread that has not answered by then is blocked.
THREAD_TIMEOUT_S = CLOSE_TIMEOUT_S + 2 * CLOSE_GRACE_S

Prepare = Callable[[Producer, TraceDispatcher | None], None]


@dataclass(slots=True)
class _Parts:
    """What one producer is made of; all on its event loop."""

    instance: ClientInstance
    producer: Producer
    trace: TraceDispatcher | None

    async def start(self) -> None:
        self.instance.start()
        await self.producer.start()
        if self.trace is not None:
            await self.trace.start()

    async def close(self) -> None:
        """Closes the producer first, so that its last sends are traced; the connections last, and in any case.

        Raises TimeoutError where brokers have not answered within CLOSE_TIMEOUT_S.
        """
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self.producer.close()
                if self.trace is not None:
                    await self.trace.close()
        finally:
            await self.instance.close()


class BackgroundProducer:
    """Safe to call from any thread, and after a fork. `group`: another producer group than the settings'.

    `prepare` gets the producer and its trace on the event loop, each time they are made, before anything is sent.
    """

    def __init__(
        self, group: str | None = None, cluster: str = DEFAULT_CLUSTER, *, prepare: Prepare | None = None
    ) -> None:
        self._group = group
        self._cluster = cluster
        self._prepare = prepare
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def run(self, use: Callable[[Producer], Coroutine[Any, Any, T]]) -> T:
        """Returns the result of `use(producer)`. Raises RuntimeError in async code, which it would block."""
        return self._thread.run(self._use(use))

    async def arun(self, use: Callable[[Producer], Coroutine[Any, Any, T]]) -> T:
        """Returns the result of `use(producer)`, without blocking the caller's event loop."""
        return await asyncio.wrap_future(self._thread.submit(self._use(use)))

    def close(self) -> None:
        """Unregisters from the brokers and ends the thread; the next use starts another."""
        with self._lock:
            thread, parts = self._thread, self._parts
            self._reset()
        try:
            if parts is not None:
                thread.submit(parts.close()).result(THREAD_TIMEOUT_S)
        except TimeoutError:
            pass
        finally:
            thread.close()

    def _reset(self) -> None:
        """Drops thread and sockets; runs in a forked child too, which has no use for its parent's."""
        self._lock = threading.Lock()
        self._thread = EventLoopThread("producer", "await producer.asend() and its like in async code")
        self._parts: _Parts | None = None
        self._starting = asyncio.Lock()

    async def _use(self, use: Callable[[Producer], Coroutine[Any, Any, T]]) -> T:
        """Runs on the producer's loop."""
        parts = self._parts
        if parts is None:
            async with self._starting:
                parts = self._parts
                if parts is None:
                    parts = self._made()
                    await parts.start()
                    self._parts = parts
        return await use(parts.producer)

    def _made(self) -> _Parts:
        """Raises ImproperlyConfigured for settings that cannot be."""
        wanted, servers = producer_settings(), namesrv(self._cluster)
        instance = ClientInstance(servers)
        trace = TraceDispatcher(instance, topic=wanted.trace_topic) if wanted.trace else None
        producer = Producer(
            servers,
            self._group or wanted.group,
            instance=instance,
            timeout_ms=wanted.timeout_ms,
            retries=wanted.retries,
            compression=wanted.compressing,
            avoids_slow_brokers=wanted.avoids_slow_brokers,
            trace=trace.record if trace else None,
        )
        if self._prepare is not None:
            self._prepare(producer, trace)
        return _Parts(instance, producer, trace)


class BackgroundProducers:
    """The producers of this process, by cluster and group; made when first asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._producers: dict[tuple[str, str | None], BackgroundProducer] = {}
        os.register_at_fork(after_in_child=self._after_fork)

    def of(self, cluster: str = DEFAULT_CLUSTER, group: str | None = None) -> BackgroundProducer:
        """Raises ImproperlyConfigured for a cluster that the settings do not name."""
        namesrv(cluster)
        with self._lock:
            producer = self._producers.get((cluster, group))
            if producer is None:
                producer = self._producers[cluster, group] = BackgroundProducer(group, cluster)
            return producer

    def close(self) -> None:
        """Closes all; the next use of one starts it anew, with the settings as they are then."""
        with self._lock:
            producers = list(self._producers.values())
        for producer in producers:
            producer.close()

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # the parent's may have been held
