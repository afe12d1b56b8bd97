"""The settings of one push consumer, frozen when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field

from consumer.engine.consume_concurrently import ConcurrentLimits
from consumer.engine.flow_control import FlowControl
from consumer.engine.start_position import StartRule
from remoting.allocation import STRATEGIES

THREADS_MAX = 1000
# How long a stop waits for listeners that run.
STOP_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """`namesrv` is "host:port;host:port"; `strategy` the name of an allocation strategy."""

    namesrv: str
    group: str
    max_reconsume_times: int = 16
    start: StartRule = field(default_factory=StartRule)
    strategy: str = "AVG"
    concurrent: ConcurrentLimits = field(default_factory=ConcurrentLimits)
    flow_control: FlowControl = field(default_factory=FlowControl)
    stop_timeout_s: float = STOP_TIMEOUT_S

    def __post_init__(self) -> None:
        """Raises ValueError."""
        threads = self.concurrent.threads
        if not 1 <= threads <= THREADS_MAX:
            raise ValueError(f"group {self.group!r}: threads is {threads}; 1 to {THREADS_MAX} are allowed")
        if self.max_reconsume_times < 0:
            raise ValueError(f"group {self.group!r}: max_reconsume_times is {self.max_reconsume_times}, less than 0")
        if self.strategy not in STRATEGIES:
            raise ValueError(f"group {self.group!r}: no allocation strategy {self.strategy!r}; {', '.join(STRATEGIES)}")
