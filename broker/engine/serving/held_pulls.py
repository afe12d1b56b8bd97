"""Pulls that found nothing and wait for a message or their deadline (RocketMQ's `PullRequestHoldService`).

A held pull is a small record, never a task. It is evaluated again when a message that its filter lets through enters
its queue, at its deadline, and, every 5 s, when its queue has grown by messages that the filter keeps out: the
answer then moves the consumer past them. What wakes during one read is resumed together after it.

A pull whose connection is gone is dropped; one whose peer doesn't read waits until it does, or until its deadline.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter
from typing import Any

from broker.engine.store.values import Appended
from remoting.complaints import ComplaintLog
from remoting.connection import Connection

# About 50 MB of records; a client holds one pull per queue it consumes. Beyond it a pull is answered "nothing" at once.
HELD_PULLS_MAX = 50_000
# One client must not take all places from the others.
HELD_PULLS_PER_CONNECTION_MAX = 10_000
# What they keep in memory, of all and of one connection: an expression may be long.
HELD_BYTES_MAX = 128 * 1024 * 1024
HELD_BYTES_PER_CONNECTION_MAX = 32 * 1024 * 1024
# Of one with an expression of n characters: a tag of a few characters is a text, a number and their places in a set;
# a comparison of ten is a kilobyte of code.
PULL_BYTES = 1_000
EXPRESSION_BYTES_PER_CHAR = 128
# Answered in one turn of the event loop, so that others come in between; and how long that may take.
RESUMED_AT_ONCE_MAX = 256
RESUMING_S_MAX = 0.01
# For finding out which pulls a message wakes by its properties; those that it did not come to are woken, and look.
FILTERING_S_MAX = 0.005
SWEEP_INTERVAL_S = 5.0
# Answered pulls lie in the heap of deadlines until they are thrown out together.
STALE_DEADLINES_MAX = 1_000

QueueKey = tuple[str, int]


@dataclass(slots=True, eq=False)
class HeldPull:
    """`matches` takes a consume-queue entry's tags code; None lets all through, as it does of `properties_match`,
    which takes the text of a message's properties. `resume` gives the answer.

    `deadline_s` is a time of the event loop. `payload` is for `resume`.
    """

    topic: str
    queue_id: int
    queue_offset: int
    matches: Callable[[int], bool] | None
    connection: Connection
    deadline_s: float
    resume: Callable[[HeldPull], None]
    payload: Any
    properties_match: Callable[[bytes], bool] | None = None
    group: str = ""
    is_held: bool = False
    held_bytes: int = PULL_BYTES

    def is_woken_by(self, appended: Appended, properties: Callable[[], bytes | None]) -> bool:
        """Tells whether this message ends the waiting; one with unknown properties does."""
        if appended.queue_offset < self.queue_offset:
            return False
        if self.matches is not None and not self.matches(appended.tags_code):
            return False
        if self.properties_match is None:
            return True
        known = properties()
        return known is None or self.properties_match(known)


@dataclass(slots=True)
class _OfConnection:
    pulls: set[HeldPull] = field(default_factory=set)
    held_bytes: int = 0

    def add(self, pull: HeldPull) -> None:
        self.pulls.add(pull)
        self.held_bytes += pull.held_bytes

    def discard(self, pull: HeldPull) -> None:
        if pull in self.pulls:
            self.pulls.remove(pull)
            self.held_bytes -= pull.held_bytes


class HeldPulls:
    """Callers: the pull processor (`hold`), the store (`appended`), the broker (`start`, `stop`), the request table
    (`connection_lost`)."""

    def __init__(
        self,
        max_offset: Callable[[str, int], int],
        properties_of: Callable[[Appended], bytes | None],
        complaints: ComplaintLog,
        held_max: int = HELD_PULLS_MAX,
    ) -> None:
        """`max_offset(topic, queue_id)`: one past the last entry of a queue. `properties_of` may raise OSError; it is
        asked at most once for a message, and only where a pull waits whose filter goes by them."""
        self._complaints = complaints
        self._max_offset = max_offset
        self._properties_of = properties_of
        self._held_max = held_max
        # As sets that keep their order: a pull leaves at once, however many wait beside it.
        self._by_queue: dict[QueueKey, dict[HeldPull, None]] = {}
        self._by_connection: dict[Connection, _OfConnection] = {}
        self._deadlines: list[tuple[float, int, HeldPull]] = []
        self._numbers = itertools.count()
        self._count = 0
        self._held_bytes = 0
        self._woken: list[HeldPull] = []
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._sweep_timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._sweep_timer = asyncio.get_running_loop().call_later(SWEEP_INTERVAL_S, self._sweep)

    def stop(self) -> None:
        """Forgets all held pulls."""
        for timer in (self._deadline_timer, self._sweep_timer):
            if timer is not None:
                timer.cancel()
        for pull in [pull for pulls in self._by_queue.values() for pull in pulls]:
            pull.is_held = False
        self._by_queue.clear()
        self._by_connection.clear()
        self._deadlines.clear()
        self._woken.clear()
        self._count = self._held_bytes = 0

    def __len__(self) -> int:
        return self._count

    def hold(self, pull: HeldPull) -> bool:
        """Returns False when too many or too large ones are held, of this client or of all, or the peer is gone."""
        of_connection = self._by_connection.get(pull.connection, _OfConnection())
        has_room = self._count < self._held_max and len(of_connection.pulls) < HELD_PULLS_PER_CONNECTION_MAX
        has_memory = (
            self._held_bytes + pull.held_bytes <= HELD_BYTES_MAX
            and of_connection.held_bytes + pull.held_bytes <= HELD_BYTES_PER_CONNECTION_MAX
        )
        if not has_room or not has_memory or not pull.connection.is_open:
            return False
        pull.is_held = True
        self._count += 1
        self._held_bytes += pull.held_bytes
        self._by_queue.setdefault((pull.topic, pull.queue_id), {})[pull] = None
        self._by_connection.setdefault(pull.connection, of_connection).add(pull)
        if len(self._deadlines) > 2 * self._count + STALE_DEADLINES_MAX:
            self._forget_stale_deadlines()
        heapq.heappush(self._deadlines, (pull.deadline_s, next(self._numbers), pull))
        if self._deadlines[0][2] is pull:
            self._set_deadline_timer()
        return True

    def appended(self, appended: list[Appended]) -> None:
        """Wakes the pulls that wait for these messages."""
        if not self._by_queue:
            return
        for one in appended:
            pulls = self._by_queue.get((one.topic, one.queue_id))
            if pulls is not None:
                self._wake_matching(one, list(pulls))

    def _wake_matching(self, appended: Appended, pulls: list[HeldPull]) -> None:
        properties = cache(lambda: self._readable_properties(appended))
        ends_s: float | None = None
        for pull in pulls:
            if pull.properties_match is not None:
                now_s = perf_counter()
                ends_s = ends_s or now_s + FILTERING_S_MAX
                if now_s >= ends_s and pull.queue_offset <= appended.queue_offset:
                    self._wake(pull)
                    continue
            if pull.is_woken_by(appended, properties):
                self._wake(pull)

    def _readable_properties(self, appended: Appended) -> bytes | None:
        """Returns None where the disk cannot be read: not the sender's fault; the pulls wake and answer it."""
        try:
            return self._properties_of(appended)
        except OSError:
            return None

    def connection_lost(self, connection: Connection) -> None:
        """Forgets the connection's pulls."""
        of_connection = self._by_connection.pop(connection, None)
        for pull in of_connection.pulls if of_connection is not None else ():
            self._forget(pull)

    def wake_topic(self, topic: str) -> None:
        """Wakes all pulls of a topic that was changed or deleted."""
        for key in [key for key in self._by_queue if key[0] == topic]:
            for pull in list(self._by_queue[key]):
                self._wake(pull)

    def wake_group(self, group: str) -> None:
        """Wakes all pulls of a group that a tool changed or deleted; that is rare, so all pulls are compared."""
        for pull in [pull for pulls in self._by_queue.values() for pull in pulls if pull.group == group]:
            self._wake(pull)

    # waking

    def _wake(self, pull: HeldPull) -> None:
        if self._must_wait_on(pull):
            return
        self._forget(pull)
        if not self._woken:
            asyncio.get_running_loop().call_soon(self._resume_woken)
        self._woken.append(pull)

    def _must_wait_on(self, pull: HeldPull) -> bool:
        return pull.connection.is_write_paused and asyncio.get_running_loop().time() < pull.deadline_s

    def _resume_woken(self) -> None:
        ends_s = perf_counter() + RESUMING_S_MAX
        done = 0
        for pull in self._woken[:RESUMED_AT_ONCE_MAX]:
            done += 1
            if self._must_wait_on(pull) and self.hold(pull):
                continue  # its peer has stopped reading since it was woken
            if pull.connection.is_open:
                self._resume(pull)
            if perf_counter() >= ends_s:
                break
        del self._woken[:done]
        if self._woken:
            asyncio.get_running_loop().call_soon(self._resume_woken)

    def _resume(self, pull: HeldPull) -> None:
        try:
            pull.resume(pull)
        except Exception:
            # The others that woke with it want their answers.
            words = "a pull of %s queue %d from %s failed"
            self._complaints.exception(
                pull.topic, "pull failed", words, pull.topic, pull.queue_id, pull.connection.peer
            )

    def _forget(self, pull: HeldPull) -> None:
        if not pull.is_held:
            return
        pull.is_held = False
        self._count -= 1
        self._held_bytes -= pull.held_bytes
        key = (pull.topic, pull.queue_id)
        pulls = self._by_queue[key]
        del pulls[pull]
        if not pulls:
            del self._by_queue[key]
        of_connection = self._by_connection.get(pull.connection)
        if of_connection is not None:
            of_connection.discard(pull)
            if not of_connection.pulls:
                del self._by_connection[pull.connection]

    # time

    def _set_deadline_timer(self) -> None:
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
            self._deadline_timer = None
        while self._deadlines and not self._deadlines[0][2].is_held:
            heapq.heappop(self._deadlines)
        if self._deadlines:
            loop = asyncio.get_running_loop()
            self._deadline_timer = loop.call_at(self._deadlines[0][0], self._wake_overdue)

    def _forget_stale_deadlines(self) -> None:
        self._deadlines = [entry for entry in self._deadlines if entry[2].is_held]
        heapq.heapify(self._deadlines)

    def _wake_overdue(self) -> None:
        now_s = asyncio.get_running_loop().time()
        while self._deadlines and self._deadlines[0][0] <= now_s:
            pull = heapq.heappop(self._deadlines)[2]
            if pull.is_held:
                self._wake(pull)
        self._set_deadline_timer()

    def _sweep(self) -> None:
        """Wakes pulls of queues that grew by messages which their filters keep out."""
        for (topic, queue_id), pulls in list(self._by_queue.items()):
            max_offset = self._max_offset(topic, queue_id)
            for pull in [pull for pull in pulls if max_offset > pull.queue_offset]:
                self._wake(pull)
        self.start()
