"""Decides when a queue is not pulled, so that memory stays bounded.

The limits of one queue are RocketMQ's; those of the whole consumer are divided among its queues, as RocketMQ divides
its per-topic thresholds, so that a member that suddenly owns every queue does not exhaust its memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from consumer.engine.process_queue import ProcessQueue

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What one queue may hold: messages, MiB of bodies, and the span between its smallest and largest offset."""

    messages_max: int
    bytes_max: int
    span_max: int


@dataclass(frozen=True, slots=True)
class FlowControl:
    """`…_for_queue` and `span_max` are Java's defaults; `…_for_consumer` bound one instance."""

    messages_for_queue: int = 1000
    bytes_for_queue: int = 100 * _MIB
    span_max: int = 2000
    messages_for_consumer: int = 20_000
    bytes_for_consumer: int = 256 * _MIB

    def limits(self, queue_count: int) -> Limits:
        """Returns the limits of each of `queue_count` queues; each is 1 at least."""
        share = max(1, queue_count)
        return Limits(
            messages_max=max(1, min(self.messages_for_queue, self.messages_for_consumer // share)),
            bytes_max=max(1, min(self.bytes_for_queue, self.bytes_for_consumer // share)),
            span_max=self.span_max,
        )


def reason_to_wait(process_queue: ProcessQueue, limits: Limits) -> str | None:
    """Returns why `process_queue` must not be pulled now; None when it may."""
    if process_queue.message_count > limits.messages_max:
        return f"{process_queue.message_count} messages wait (at most {limits.messages_max})"
    if process_queue.body_bytes > limits.bytes_max:
        return f"{process_queue.body_bytes // _MIB} MiB wait (at most {limits.bytes_max // _MIB})"
    if process_queue.span > limits.span_max:
        return f"offset {process_queue.offset_min} is unfinished, {process_queue.span} before the last pulled"
    return None
