"""Where a queue is read from first (Java `RebalancePushImpl.computePullFromWhere`).

A stored offset always wins; the group's own word only counts where nothing is stored. Brokers answer 0 instead of
"nothing stored" for a queue whose first message is still hot, so a young topic is read from its beginning whatever
the group says: that is RocketMQ's rule.
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
    """Values are what a heartbeat says."""

    LAST = "CONSUME_FROM_LAST_OFFSET"
    FIRST = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


@dataclass(frozen=True, slots=True)
class StartRule:
    """`timestamp_ms` (since the epoch) counts with TIMESTAMP only."""

    consume_from: ConsumeFrom = ConsumeFrom.LAST
    timestamp_ms: int = 0


def start_rule(word: str | datetime) -> StartRule:
    """ "last", "first", or a moment with its time zone. Raises ValueError for anything else."""
    if isinstance(word, datetime):
        if word.tzinfo is None:
            raise ValueError(f"consume_from={word!r} has no time zone")
        return StartRule(ConsumeFrom.TIMESTAMP, int(word.timestamp() * 1000))
    try:
        return {"last": StartRule(ConsumeFrom.LAST), "first": StartRule(ConsumeFrom.FIRST)}[word]
    except (KeyError, TypeError):
        raise ValueError(f'consume_from={word!r} is neither "last", "first" nor a datetime') from None


class OffsetQuestions(Protocol):
    """What a broker can be asked; raises ClientError when it does not answer."""

    async def max_offset(self, queue: MessageQueue) -> int: ...

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int: ...


@dataclass(frozen=True, slots=True)
class StartPosition:
    """`offset` is the next to consume; `because` names the rule, for the log."""

    offset: int
    because: str


async def start_position(
    queue: MessageQueue, stored: int | None, rule: StartRule, broker: OffsetQuestions
) -> StartPosition:
    """`stored` is the group's committed offset, None when there is none. Raises ClientError."""
    if stored is not None:
        return StartPosition(stored, "committed before")
    ask = _RULES[rule.consume_from, is_retry_topic(queue.topic)]
    return await ask(queue, rule, broker)


async def _beginning(queue: MessageQueue, rule: StartRule, broker: OffsetQuestions) -> StartPosition:  # noqa: ARG001
    # Where 0 is gone the first pull corrects it.
    return StartPosition(0, "nothing committed: from the beginning")


async def _end(queue: MessageQueue, rule: StartRule, broker: OffsetQuestions) -> StartPosition:  # noqa: ARG001
    return StartPosition(await broker.max_offset(queue), "nothing committed: from the end")


async def _moment(queue: MessageQueue, rule: StartRule, broker: OffsetQuestions) -> StartPosition:
    offset = await broker.offset_at(queue, rule.timestamp_ms)
    return StartPosition(offset, f"nothing committed: from time {rule.timestamp_ms}")


_Ask = Callable[[MessageQueue, StartRule, OffsetQuestions], Awaitable[StartPosition]]

# (rule, is it the retry topic) → what decides. Retries are never skipped but with TIMESTAMP, as in Java.
_RULES: dict[tuple[ConsumeFrom, bool], _Ask] = {
    (ConsumeFrom.LAST, False): _end,
    (ConsumeFrom.LAST, True): _beginning,
    (ConsumeFrom.FIRST, False): _beginning,
    (ConsumeFrom.FIRST, True): _beginning,
    (ConsumeFrom.TIMESTAMP, False): _moment,
    (ConsumeFrom.TIMESTAMP, True): _end,
}
