"""Where a queue is pulled from first (Java `RebalancePushImpl.computePullFromWhere`).

A committed offset always wins; the group's start rule counts only where nothing is committed. Brokers answer 0 instead
of "nothing committed" for a queue whose first message is still in memory, so a young topic is consumed from its
beginning whatever the rule says: RocketMQ does so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Protocol

from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.names import is_retry_topic


class ConsumeFrom(Enum):
    """Values as in the heartbeat."""

    LAST = "CONSUME_FROM_LAST_OFFSET"
    FIRST = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


@dataclass(frozen=True, slots=True)
class StartRule:
    """`timestamp_ms` (since the epoch) counts with TIMESTAMP only."""

    consume_from: ConsumeFrom = ConsumeFrom.LAST
    timestamp_ms: int = 0


def start_rule(value: str | datetime) -> StartRule:
    """Returns the rule for "last", "first", or a datetime with its time zone. Raises ValueError for anything else."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"consume_from={value!r} has no time zone")
        return StartRule(ConsumeFrom.TIMESTAMP, int(value.timestamp() * 1000))
    try:
        return {"last": StartRule(ConsumeFrom.LAST), "first": StartRule(ConsumeFrom.FIRST)}[value]
    except (KeyError, TypeError):
        raise ValueError(f'consume_from={value!r} is neither "last", "first" nor a datetime') from None


class OffsetQueries(Protocol):
    """Offsets that a broker can be asked for; raises ClientError when it does not answer."""

    async def max_offset(self, queue: MessageQueue) -> int: ...

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int: ...


@dataclass(frozen=True, slots=True)
class StartPosition:
    """`offset` is the next to consume; `reason` is for the log."""

    offset: int
    reason: str


async def start_position(
    queue: MessageQueue, committed: int | None, rule: StartRule, broker: OffsetQueries
) -> StartPosition:
    """Returns the queue offset to begin at.

    `committed` is the group's committed offset, None when there is none. Raises ClientError.
    """
    if committed is not None:
        # Brokers answer 0 for a young queue without a commit, too.
        return StartPosition(committed, "committed before" if committed else "from the beginning")
    determine = _RULES[rule.consume_from, is_retry_topic(queue.topic)]
    return await determine(queue, rule, broker)


async def _beginning(queue: MessageQueue, rule: StartRule, broker: OffsetQueries) -> StartPosition:  # noqa: ARG001
    # If offset 0 has been deleted, the answer to the first pull corrects it.
    return StartPosition(0, "nothing committed: from the beginning")


async def _end(queue: MessageQueue, rule: StartRule, broker: OffsetQueries) -> StartPosition:  # noqa: ARG001
    return StartPosition(await broker.max_offset(queue), "nothing committed: from the end")


async def _timestamp(queue: MessageQueue, rule: StartRule, broker: OffsetQueries) -> StartPosition:
    offset = await broker.offset_at(queue, rule.timestamp_ms)
    return StartPosition(offset, f"nothing committed: from time {rule.timestamp_ms}")


_Determine = Callable[[MessageQueue, StartRule, OffsetQueries], Awaitable[StartPosition]]

# (rule, whether the topic is the retry topic) → start. Retries are skipped with TIMESTAMP only, as in Java.
_RULES: dict[tuple[ConsumeFrom, bool], _Determine] = {
    (ConsumeFrom.LAST, False): _end,
    (ConsumeFrom.LAST, True): _beginning,
    (ConsumeFrom.FIRST, False): _beginning,
    (ConsumeFrom.FIRST, True): _beginning,
    (ConsumeFrom.TIMESTAMP, False): _timestamp,
    (ConsumeFrom.TIMESTAMP, True): _end,
}
