"""Calls sync listeners in threads, without more threads and switches between them than the listeners need.

Threads take one call at a time from one inbox, so that none waits behind a slow one in a thread's own list. While a
listener only computes, a second thread would do nothing but compete for the interpreter's lock: calls of a listener
that is fast run in one thread, which goes to sleep only when the inbox is empty. While anything waits, the event loop
looks every `LOOK_INTERVAL_S` at what was taken, and wakes more threads or fewer (`threads_wanted`).

A thread wakes the event loop when it has found the inbox empty; what else has finished is reported at the next look, or
with what comes last. After a call that failed it waits for the report, since a breaker may stop the next call. The
event loop looks at whether the inbox is empty before it takes what has finished: a thread that finishes later and does
not wake it has seen calls that were submitted later, and the event loop looks again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable

from consumer.engine.clock import Clock
from consumer.engine.listener_call import ListenerCall, Reported
from consumer.engine.listening import call_sync

# A call waits for so long behind a slow one until another thread takes it; finished ones for their report.
LOOK_INTERVAL_S = 0.005
# An event loop that looks so late had to wait for the interpreter's lock or the processor: both are busy.
LATE_S = 0.002
# How long a close waits for idle threads.
JOIN_TIMEOUT_S = 2.0


def threads_wanted(*, active: int, taken: int, waiting: int, is_late: bool, count: int) -> int:
    """Returns how many of `count` threads should run listeners: `taken` calls began since the last look.

    Threads that hang in their calls are joined by one for each call that waits. Else it is twice as many while the
    interpreter has time for more, and half while it has not.
    """
    if taken <= active:
        return min(count, active + waiting)
    return max(1, active // 2) if is_late else min(count, active * 2)


class ThreadWorkers:
    """Up to `count` threads, made when first needed. `at_thread_end` runs in each before it ends.

    The threads are daemons: a listener that never returns must not keep the process alive after the consumer's stop.
    """

    def __init__(
        self,
        count: int,
        reported: Reported,
        clock: Clock,
        *,
        name: str,
        at_thread_end: Callable[[], None] | None = None,
    ) -> None:
        self._count = count
        self._reported = reported
        self._clock = clock
        self._name = name
        self._at_thread_end = at_thread_end
        self._loop = asyncio.get_running_loop()
        self._inbox: deque[ListenerCall] = deque()
        self._finished: deque[ListenerCall] = deque()
        self._is_delivering = False
        # A lock per thread that waits until its call was reported: released then.
        self._unreported: deque[threading.Lock] = deque()
        self._threads: list[threading.Thread] = []
        self._is_closing = False
        # Guards the next two.
        self._mutex = threading.Lock()
        self._active_count = 0
        # A lock per sleeping thread: released to wake it.
        self._sleeping: list[threading.Lock] = []
        self._wanted_count = 1
        self._submitted_count = 0
        self._taken_count = 0
        self._next_look: asyncio.TimerHandle | None = None

    def submit(self, calls: list[ListenerCall]) -> None:
        if self._next_look is None:
            self._taken_count = self._submitted_count - len(self._inbox)
            self._schedule_look()
        self._inbox.extend(calls)
        self._submitted_count += len(calls)
        self._wake(min(self._wanted_count, len(calls)))

    def discard_waiting(self) -> list[ListenerCall]:
        discarded: list[ListenerCall] = []
        while True:
            try:
                discarded.append(self._inbox.popleft())
            except IndexError:
                return discarded

    async def close(self) -> None:
        """Ends idle threads and waits for them; one that hangs in its listener is left behind."""
        self._is_closing = True
        if self._next_look is not None:
            self._next_look.cancel()
        with self._mutex:
            while self._sleeping:
                self._sleeping.pop().release()
        self._release_unreported()
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        deadline_s = time.monotonic() + JOIN_TIMEOUT_S
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))

    # on the event loop

    def _wake(self, count: int) -> None:
        """Sees to it that `count` threads are awake; one that finds nothing to do goes to sleep again."""
        missing = 0
        with self._mutex:
            while self._active_count < count:
                if self._sleeping:
                    self._sleeping.pop().release()
                elif len(self._threads) + missing < self._count:
                    missing += 1
                else:
                    break
                self._active_count += 1
        for _ in range(missing):
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads) + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _schedule_look(self) -> None:
        due_s = self._loop.time() + LOOK_INTERVAL_S
        self._next_look = self._loop.call_at(due_s, self._look, due_s)

    def _look(self, due_s: float) -> None:
        self._next_look = None
        is_late = self._loop.time() - due_s > LATE_S
        waiting = len(self._inbox)
        taken, self._taken_count = self._submitted_count - waiting - self._taken_count, self._submitted_count - waiting
        if waiting:
            self._wanted_count = threads_wanted(
                active=self._active_count, taken=taken, waiting=waiting, is_late=is_late, count=self._count
            )
            self._wake(self._wanted_count)
        self._deliver()
        if waiting and self._next_look is None:
            self._schedule_look()

    def _deliver(self) -> None:
        # Cleared before the calls are read: one that arrives after the last read wakes the loop again.
        self._is_delivering = False
        finished = []
        while self._finished:
            finished.append(self._finished.popleft())
        try:
            if finished:
                self._reported(finished)
        finally:
            self._release_unreported()

    def _release_unreported(self) -> None:
        while self._unreported:
            self._unreported.popleft().release()

    # in the threads

    def _work(self) -> None:
        awake = threading.Lock()
        awake.acquire()
        try:
            while not self._is_closing:
                try:
                    call = self._inbox.popleft()
                except IndexError:
                    self._sleep(awake, 0)
                    continue
                self._carry_out(call)
                self._finished.append(call)
                if call.error is not None:
                    self._wait_for_report(awake)
                elif not self._inbox:
                    self._wake_loop()
                elif self._active_count > self._wanted_count:
                    self._sleep(awake, self._wanted_count)
        finally:
            if self._at_thread_end is not None:
                self._at_thread_end()

    def _sleep(self, awake: threading.Lock, others: int) -> None:
        """Returns when woken; at once when a call waits and fewer than `others` other threads are awake."""
        with self._mutex:
            # Calls are put into the inbox before the loop looks at who is awake: none is overlooked.
            if self._is_closing or self._active_count <= others or (not others and self._inbox):
                return
            self._active_count -= 1
            self._sleeping.append(awake)
        awake.acquire()

    def _carry_out(self, call: ListenerCall) -> None:
        if call.first.process_queue.is_dropped:
            call.is_skipped = True
            return
        began_s = time.perf_counter()
        try:
            listener, argument = call.begin(self._clock())
            call_sync(listener, argument)
        except BaseException as raised:  # SystemExit in a listener ends neither thread nor process
            call.error = raised
        call.duration_ms = (time.perf_counter() - began_s) * 1000

    def _wait_for_report(self, reported: threading.Lock) -> None:
        self._unreported.append(reported)
        if self._wake_loop() and not self._is_closing:
            reported.acquire()

    def _wake_loop(self) -> bool:
        """Wakes the event loop once for all that finishes before it runs. Returns False when it was closed."""
        if self._is_delivering:
            return True
        self._is_delivering = True
        try:
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            return False  # while a listener hung
        return True
