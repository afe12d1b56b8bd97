"""Whether a consumer pulls (Java `suspend` and `resume`).

Several may want it to stand still at once (an operator, a breaker), each for a reason of its own: it pulls again when
the last of them has taken the reason back. What was pulled before is consumed.
"""

from __future__ import annotations

import asyncio


class Suspension:
    """Called on the event loop alone."""

    def __init__(self) -> None:
        self._reasons: dict[str, None] = {}
        self._may_pull = asyncio.Event()
        self._may_pull.set()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Returns why nothing is pulled, the oldest reason first; empty when it is."""
        return tuple(self._reasons)

    def suspend(self, reason: str) -> None:
        self._reasons[reason] = None
        self._may_pull.clear()

    def resume(self, reason: str) -> None:
        """Does nothing for a reason that was not given."""
        self._reasons.pop(reason, None)
        if not self._reasons:
            self._may_pull.set()

    async def wait(self, timeout_s: float) -> None:
        """Returns when pulling is allowed, at the latest after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._may_pull.wait()
        except TimeoutError:
            pass
