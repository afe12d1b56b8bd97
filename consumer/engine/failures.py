"""Why messages failed here: for their retries and dead letters, for running info, and for whoever records failures."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from consumer.engine.clock import Clock
from consumer.engine.listening import Listener
from consumer.engine.process_queue import CachedMessage
from consumer.engine.subscriptions import original_topic
from remoting.wire.error_text import error_text
from remoting.wire.failures import FailureReason, LatestFailure

# Failures that running info tells: it is asked for often, and read by people.
LATEST_FAILURES_MAX = 10


@dataclass(frozen=True, slots=True)
class Failure:
    """One attempt at one message. `message_id` is the sender's unique key, which retries and the dead letter keep."""

    topic: str
    message_id: str
    failed_ms: int
    reason: FailureReason


# Called on the event loop: it must not block, nor raise.
RecordFailure = Callable[[Failure], None]


class Failures:
    """Keeps the latest failures of member `member`, and hands each to `record`. With `is_on` False there are none."""

    def __init__(self, member: str, clock: Clock, record: RecordFailure | None = None, *, is_on: bool = True) -> None:
        self._member = member
        self._clock = clock
        self._record = record
        self._is_on = is_on
        self._latest: deque[Failure] = deque(maxlen=LATEST_FAILURES_MAX)

    def add(self, listener: Listener | None, cached: CachedMessage, error: BaseException) -> FailureReason | None:
        """Returns what a send-back tells; None when texts are off."""
        if not self._is_on:
            return None
        reason = FailureReason(
            exception=_class_name(type(error)),
            text=error_text(error),
            listener=listener.name if listener is not None else "",
            member=self._member,
            attempt=cached.reconsume_times + 1,
        )
        failure = Failure(original_topic(cached.stored), cached.stored.message_id, self._clock(), reason)
        self._latest.append(failure)
        if self._record is not None:
            self._record(failure)
        return reason

    def latest(self) -> list[LatestFailure]:
        """Returns the latest failures, the last one first."""
        return [
            LatestFailure(
                topic=failure.topic,
                message_id=failure.message_id,
                failed_ms=failure.failed_ms,
                exception=failure.reason.exception,
                text=failure.reason.text,
                listener=failure.reason.listener,
                attempt=failure.reason.attempt,
            )
            for failure in reversed(self._latest)
        ]


def _class_name(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
