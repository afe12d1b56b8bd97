"""What becomes of a message whose listener raised: when it comes again, or that it is a dead letter at once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from consumer.engine.outcomes import DeadLetter, Later, delay_level_for

# Delay levels of a send-back (Java `delayLevelWhenNextConsume`). With 0 the broker takes level 3 + reconsume times.
BROKER_DECIDES = 0
DEAD_LETTER = -1


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """`dead_letter_on`: exceptions that no retry would help. `retry_delays_s`: exception class → seconds to wait.

    A subclass counts as its base; of several entries the closest base counts. What a listener says itself, by `Later`
    with a delay or by `DeadLetter`, comes first.
    """

    dead_letter_on: tuple[type[BaseException], ...] = ()
    retry_delays_s: Mapping[type[BaseException], float] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        """Raises ValueError for a delay that is not positive."""
        for delay_s in self.retry_delays_s.values():
            delay_level_for(delay_s)

    def names(self, error: BaseException) -> bool:
        """Returns whether the listener said beforehand, or says now, what becomes of a message that fails so."""
        return isinstance(error, (DeadLetter, *self.dead_letter_on, *self.retry_delays_s))

    def delay_level(self, error: BaseException) -> int:
        """Returns the delay level to send the message back with."""
        if isinstance(error, Later) and error.delay_level is not None:
            return error.delay_level
        if isinstance(error, (DeadLetter, *self.dead_letter_on)):
            return DEAD_LETTER
        delay_s = next((self.retry_delays_s[one] for one in type(error).__mro__ if one in self.retry_delays_s), None)
        return BROKER_DECIDES if delay_s is None else delay_level_for(delay_s)
