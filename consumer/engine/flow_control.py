"""Decides when a queue is not pulled, so that memory stays bounded.

The limits of one queue and of a topic are RocketMQ's. Those of a topic are divided among the queues that the member
owns, of all topics, as in Java; so are those of the whole consumer, which Java does not have: a member that suddenly
owns every queue must not exhaust its memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from consumer.engine.process_queue import ProcessQueue
from remoting.wire.limits import PULL_MESSAGES_MAX

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What one queue may hold: messages, MiB of bodies, and the span between its smallest and largest offset."""

    messages_max: int
    bytes_max: int
    span_max: int | None


@dataclass(frozen=True, slots=True)
class FlowControl:
    """`…_for_queue` and `span_max` are Java's defaults; `…_for_consumer` bound one instance.

    `…_for_topic` take the place of `…_for_queue` where they are given. `span_max` None: no limit, as for queues that
    are consumed in order. `pull_batch_size` messages are asked for at once; brokers may answer fewer (Apache's 32).
    `pull_interval_ms` passes between a pull that found messages and the next one.
    """

    messages_for_queue: int = 1000
    bytes_for_queue: int = 100 * MIB
    span_max: int | None = 2000
    messages_for_topic: int | None = None
    bytes_for_topic: int | None = None
    pull_batch_size: int = PULL_MESSAGES_MAX
    pull_interval_ms: int = 0
    messages_for_consumer: int = 20_000
    bytes_for_consumer: int = 256 * MIB

    def limits(self, queue_count: int) -> Limits:
        """Returns the limits of each of `queue_count` queues; each is 1 at least."""
        share = max(1, queue_count)
        return Limits(
            messages_max=_share(self.messages_for_queue, self.messages_for_topic, self.messages_for_consumer, share),
            bytes_max=_share(self.bytes_for_queue, self.bytes_for_topic, self.bytes_for_consumer, share),
            span_max=self.span_max,
        )


def _share(for_queue: int, for_topic: int | None, for_consumer: int, queue_count: int) -> int:
    wanted = for_queue if for_topic is None else for_topic // queue_count
    return max(1, min(wanted, for_consumer // queue_count))


def reason_to_wait(process_queue: ProcessQueue, limits: Limits) -> str | None:
    """Returns why `process_queue` must not be pulled now; None when it may."""
    if process_queue.message_count > limits.messages_max:
        return f"{process_queue.message_count} messages wait (at most {limits.messages_max})"
    if process_queue.body_bytes > limits.bytes_max:
        return f"{process_queue.body_bytes // MIB} MiB wait (at most {limits.bytes_max // MIB})"
    if limits.span_max is not None and process_queue.span > limits.span_max:
        return f"offset {process_queue.offset_min} is unfinished, {process_queue.span} before the last pulled"
    return None
