"""A clock that stands until a test moves it."""

from __future__ import annotations


class ManualClock:
    """Calling it gives ms since the epoch."""

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def advance_ms(self, by_ms: int) -> None:
        self.now_ms += by_ms
