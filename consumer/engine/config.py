"""The settings of one push consumer, frozen when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from consumer.engine.breaker import Breaker
from consumer.engine.consume_concurrently import ConcurrentLimits
from consumer.engine.consume_orderly import SUSPEND_MS, SUSPEND_MS_MAX, SUSPEND_MS_MIN
from consumer.engine.flow_control import MIB, FlowControl
from consumer.engine.start_position import StartRule
from remoting.allocation import STRATEGIES, Strategy
from remoting.wire.names import TRACE_TOPIC

# Java's ranges, both ends included.
THREADS_MAX = 1000
FOR_QUEUE = (1, 65_535)
FOR_TOPIC = (1, 6_553_500)
SIZE_FOR_QUEUE_MIB = (1, 1024)
SIZE_FOR_TOPIC_MIB = (1, 102_400)
SPAN = (1, 65_535)
PULL_BATCH = (1, 1024)
PULL_INTERVAL_MS = (0, 65_535)
# RocketMQ's defaults; the second is Java's Integer.MAX_VALUE.
RECONSUME_TIMES = 16
RECONSUME_TIMES_ORDERLY = 2**31 - 1
# How long a stop waits for listeners that run.
STOP_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """`namesrv` is "host:port;host:port"; `strategy` an allocation strategy by name, or as a function.

    `is_orderly`: each queue's messages one after the other; a queue whose message failed rests for `suspend_ms`.
    `max_reconsume_times` None: 16, and without end in order, as in Java. `is_broadcasting`: every member gets every
    message, and keeps its own offsets below `offsets_folder`. `namespace`: brokers know group and topics by names that
    begin with it, listeners by those that are declared. `trace`: what listeners make of messages goes to `trace_topic`.
    `keeps_failure_texts`: the broker and running info are told why a message failed.
    `breaker` suspends concurrent consumption while something is down.
    """

    namesrv: str
    group: str
    max_reconsume_times: int | None = None
    start: StartRule = field(default_factory=StartRule)
    strategy: str | Strategy = "AVG"
    concurrent: ConcurrentLimits = field(default_factory=ConcurrentLimits)
    flow_control: FlowControl = field(default_factory=FlowControl)
    stop_timeout_s: float = STOP_TIMEOUT_S
    is_orderly: bool = False
    suspend_ms: int = SUSPEND_MS
    is_broadcasting: bool = False
    offsets_folder: Path | None = None
    keeps_failure_texts: bool = True
    breaker: Breaker | None = None
    namespace: str = ""
    trace: bool = False
    trace_topic: str = TRACE_TOPIC

    @property
    def reconsume_limit(self) -> int:
        """Returns how often a message is consumed again before it is a dead letter."""
        if self.max_reconsume_times is not None:
            return self.max_reconsume_times
        return RECONSUME_TIMES_ORDERLY if self.is_orderly else RECONSUME_TIMES

    def __post_init__(self) -> None:
        """Raises ValueError."""
        for name, (low, high), value in self._numbers():
            if value is not None and not low <= value <= high:
                raise ValueError(f"group {self.group!r}: {name} is {value}; {low} to {high} are allowed")
        if self.reconsume_limit < 0:
            raise ValueError(f"group {self.group!r}: max_reconsume_times is {self.max_reconsume_times}, less than 0")
        if self.is_broadcasting and self.offsets_folder is None:
            raise ValueError(f"group {self.group!r} is broadcasting: offsets_folder says where it keeps its offsets")
        check_strategy(self.group, self.strategy)

    def _numbers(self) -> tuple[tuple[str, tuple[int, int], int | None], ...]:
        flow = self.flow_control
        return (
            ("threads", (1, THREADS_MAX), self.concurrent.threads),
            ("suspend_ms", (SUSPEND_MS_MIN, SUSPEND_MS_MAX), self.suspend_ms),
            ("messages_for_queue", FOR_QUEUE, flow.messages_for_queue),
            ("messages_for_topic", FOR_TOPIC, flow.messages_for_topic),
            ("bytes_for_queue", _in_bytes(SIZE_FOR_QUEUE_MIB), flow.bytes_for_queue),
            ("bytes_for_topic", _in_bytes(SIZE_FOR_TOPIC_MIB), flow.bytes_for_topic),
            ("span_max", SPAN, flow.span_max),
            ("pull_batch_size", PULL_BATCH, flow.pull_batch_size),
            ("pull_interval_ms", PULL_INTERVAL_MS, flow.pull_interval_ms),
        )


def _in_bytes(mib: tuple[int, int]) -> tuple[int, int]:
    return 1, mib[1] * MIB


def check_strategy(group: str, strategy: object) -> None:
    """Raises ValueError for what is neither the name of a strategy nor a function."""
    if strategy not in STRATEGIES if isinstance(strategy, str) else not callable(strategy):
        raise ValueError(
            f"group {group!r}: no allocation strategy {strategy!r}; it is one of {', '.join(STRATEGIES)}, a strategy"
            " with parameters of remoting.allocation, or a function (queues, members, me) → queues"
        )
