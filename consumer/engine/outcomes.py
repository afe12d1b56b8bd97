"""What a listener raises to say what becomes of its messages, and what its body's type raises before it is called."""

from __future__ import annotations

# RocketMQ's default `messageDelayLevel`, in seconds: level 1 is the first.
DELAY_LEVELS_S = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)


class Later(Exception):
    """Raised by a listener to consume the message later (Java `RECONSUME_LATER`).

    It counts as any other failure, but is logged in one line without a traceback. Without a delay the broker decides:
    10 s after the first failure, then 30 s, 1 min and so on. A listener that takes batches says with `consumed` how
    many messages, from the first on, are consumed nevertheless (Java's ack index + 1); the others come later.
    """

    def __init__(
        self, *reason: object, delay_level: int | None = None, delay_s: float | None = None, consumed: int = 0
    ) -> None:
        """`delay_level` is a level of the broker's; `delay_s` means the first level that is not shorter.

        Raises ValueError for both, and for what is no level, no time or no number of messages.
        """
        super().__init__(*reason)
        if delay_level is not None and delay_s is not None:
            raise ValueError("Later: give delay_level or delay_s, not both")
        if delay_level is not None and delay_level < 1:
            raise ValueError(f"Later: delay_level is {delay_level}; levels start at 1 (DeadLetter ends the retries)")
        if consumed < 0:
            raise ValueError(f"Later: consumed is {consumed}, less than 0")
        self.delay_level = delay_level_for(delay_s) if delay_s is not None else delay_level
        self.consumed = consumed


class DeadLetter(Exception):
    """Raised by a listener to make the message a dead letter at once: no retry would help."""


class NotDecoded(Exception):
    """A body is not what its listener declares. The text is the whole reason, so no traceback is logged."""


class ConsumeTimedOut(Exception):
    """Why a message was sent back whose listener still runs; nobody raises it."""


def delay_level_for(delay_s: float) -> int:
    """Returns the first default level that is not shorter; the last one for more than two hours.

    Raises ValueError for a time that is not positive.
    """
    if not delay_s > 0:
        raise ValueError(f"a delay of {delay_s} s is no time to wait")
    return next(
        (level for level, level_s in enumerate(DELAY_LEVELS_S, start=1) if level_s >= delay_s), len(DELAY_LEVELS_S)
    )
