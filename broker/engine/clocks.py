"""The clock that never jumps, for what counts how long something has lasted."""

from __future__ import annotations

import asyncio


def steady_clock() -> int:
    """The event loop's ms: nothing may expire, or outlive its time, because somebody set the machine's clock."""
    return int(asyncio.get_running_loop().time() * 1000)
