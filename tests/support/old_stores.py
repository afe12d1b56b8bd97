"""A store of several segments for tests of retention."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from broker.engine.store.message_store import MessageStore
from tests.support.stores import SMALL, ManualClock, draft, open_store, wait_for_flush

# A segment of 16 KiB takes 13 of these messages.
_BODY = b"x" * 1100
PER_SEGMENT = 13


def old_store(folder: Path, clock: ManualClock, segment_count: int, topic: str = "orders") -> MessageStore:
    """Full segments, each closed a second after the one before; a message more in the last one."""
    store = open_store(folder, replace(SMALL, flush_interval_ms=1), clock)
    for _ in range(segment_count - 1):
        for _ in range(PER_SEGMENT):
            store.append(draft(_BODY, topic))
        clock.now_ms += 1000
    store.append(draft(_BODY, topic))
    wait_for_flush(store)
    return store


def segment_names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "commitlog").iterdir())
