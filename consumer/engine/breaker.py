"""Stops consuming while what the listeners depend on is down, instead of sending message after message back.

    CLOSED     messages are consumed; `failures` calls in a row that fail with one of `on` open it
    OPEN       nothing is pulled, and what was pulled waits; after the pause one message is tried
    PROBING    that message decides: consumed closes it, failed with one of `on` opens it for twice as long

A call that fails with another exception says nothing about what is down. `Circuit` is pure; `BreakerGate` does what it
says, on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from consumer.engine.listener_call import ListenerCall
from consumer.engine.process_queue import CachedMessage
from consumer.engine.suspension import Suspension
from remoting.wire.error_text import error_text

logger = logging.getLogger(__name__)

FAILURES = 5
PAUSE_S = 10.0
PAUSE_MAX_S = 300.0
# What running info says of the exception's text.
TEXT_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Breaker:
    """`on`: exceptions that mean that something is down, as `django.db.OperationalError`. Pauses in seconds, each twice
    the one before up to `pause_max_s`."""

    on: type[BaseException] | tuple[type[BaseException], ...]
    failures: int = FAILURES
    pause_s: float = PAUSE_S
    pause_max_s: float = PAUSE_MAX_S

    def __post_init__(self) -> None:
        """Raises ValueError for what can never open or never close."""
        given = self.on if isinstance(self.on, tuple) else (self.on,)
        if not given or not all(isinstance(one, type) and issubclass(one, BaseException) for one in given):
            raise ValueError(f"Breaker: on is {self.on!r}; an exception class, or a tuple of them, is needed")
        if self.failures < 1 or not 0 < self.pause_s <= self.pause_max_s:
            raise ValueError(
                f"Breaker: failures {self.failures}, pause_s {self.pause_s}, pause_max_s {self.pause_max_s}; at least"
                " one failure and a pause above 0, not above the longest, are needed"
            )


class State(Enum):
    CLOSED = "closed"
    OPEN = "open"
    PROBING = "probing"


class Circuit:
    """`judge` each call's end; `pause_over` after the pause that it returned."""

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker
        self.state = State.CLOSED
        self._failed_count = 0
        self._pause_s = 0.0

    def judge(self, error: BaseException | None) -> float | None:
        """Returns for how many seconds it opens now; None when it does not. Calls that began before do not count."""
        if self.state is State.OPEN:
            return None
        if error is None:
            self.state, self._failed_count, self._pause_s = State.CLOSED, 0, 0.0
            return None
        if not isinstance(error, self._breaker.on):
            return None
        self._failed_count += 1
        if self.state is State.CLOSED and self._failed_count < self._breaker.failures:
            return None
        self._failed_count = 0
        self._pause_s = min(self._pause_s * 2 or self._breaker.pause_s, self._breaker.pause_max_s)
        self.state = State.OPEN
        return self._pause_s

    def pause_over(self) -> None:
        self.state = State.PROBING


class BreakerGate:
    """Stands between what was pulled and the workers. `begin` hands messages of one queue to them.

    What waits here is bounded by the flow control of its queues. Messages of a queue that was lost go on, too: workers
    skip them.
    """

    def __init__(
        self, breaker: Breaker, group: str, suspension: Suspension, begin: Callable[[Sequence[CachedMessage]], None]
    ) -> None:
        self._circuit = Circuit(breaker)
        self._group = group
        self._suspension = suspension
        self._begin = begin
        self._held: list[Sequence[CachedMessage]] = []
        # Why it is open: a reason of its own, for which it suspends and resumes.
        self._reason = "breaker"
        self._pause: asyncio.TimerHandle | None = None
        self._is_probe_under_way = False

    @property
    def state(self) -> State:
        return self._circuit.state

    def submit(self, messages: Sequence[CachedMessage]) -> None:
        if self._circuit.state is State.CLOSED:
            self._begin(messages)
        else:
            self._held.append(messages)
            self._probe()

    def take_back(self, calls: list[ListenerCall]) -> None:
        """Holds calls that had not begun when it opened."""
        self._held += [call.messages for call in calls]

    def judge(self, call: ListenerCall) -> bool:
        """Returns True when the call opened it: what waits for workers is to be taken back."""
        was = self._circuit.state
        pause_s = None if call.is_skipped else self._circuit.judge(call.error)
        if was is State.PROBING:
            self._is_probe_under_way = False
        if pause_s is not None and call.error is not None:
            self._open(call.error, pause_s)
            return True
        if was is State.PROBING:
            if self._circuit.state is State.CLOSED:
                self._close()
            else:  # the probe said nothing: another one
                self._probe()
        return False

    def stop(self) -> None:
        """Messages that wait here are left to other members."""
        if self._pause is not None:
            self._pause.cancel()
        self._held.clear()

    def _open(self, error: BaseException, pause_s: float) -> None:
        said = f"{type(error).__name__}: {error_text(error)}"
        logger.warning("group %s: the breaker opens for %g s: %s", self._group, pause_s, said)
        self._suspension.resume(self._reason)  # that of an earlier opening
        self._reason = f"breaker: {said}"[:TEXT_CHARS_MAX]
        self._suspension.suspend(self._reason)
        self._pause = asyncio.get_running_loop().call_later(pause_s, self._pause_over)

    def _pause_over(self) -> None:
        self._circuit.pause_over()
        if self._held:
            self._probe()
        else:
            self._suspension.resume(self._reason)  # the first message that is pulled is the probe

    def _probe(self) -> None:
        """Lets one message begin."""
        if self._circuit.state is not State.PROBING or self._is_probe_under_way or not self._held:
            return
        first = self._held.pop(0)
        if len(first) > 1:
            self._held.insert(0, first[1:])
        self._is_probe_under_way = True
        self._begin(first[:1])

    def _close(self) -> None:
        logger.info("group %s: the breaker closes", self._group)
        self._suspension.resume(self._reason)
        held, self._held = self._held, []
        for messages in held:
            self._begin(messages)
