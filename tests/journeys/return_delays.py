"""How long a broker was asked to keep a message that its listener refused, and kept it.

Read from the broker, not from when its consumer sees the message again: one that has just joined may read its retry
topic up to 30 s late. Apache's broker refuses pulls with a newer subscription than its last heartbeat told of
(SUBSCRIPTION_NOT_LATEST), and Apache's client sends no heartbeat for it while another of its threads is sending one.
"""

from __future__ import annotations

from collections.abc import Sequence

from remoting.wire.names import SCHEDULE_TOPIC
from tests.support.reading import all_messages

# Of the levels that the tests use.
DELAYS_MS = {1: 1000, 3: 10_000, 4: 30_000}
# Of the first retries, unless the listener asks for others.
FIRST_LEVELS = (3, 4)


def assert_delayed(address: str, unique_key: str, returns_ms: Sequence[int], levels: Sequence[int]) -> None:
    """`returns_ms`: when the broker stored each return of the message, which was to wait for the delay of its level."""
    waits = sorted(
        (message.store_timestamp_ms, level)
        for level in DELAYS_MS
        for message in all_messages(address, SCHEDULE_TOPIC, level - 1)
        if message.unique_key == unique_key
    )
    assert [level for _, level in waits] == list(levels)
    for (asked_ms, level), returned_ms in zip(waits, returns_ms, strict=True):
        assert returned_ms - asked_ms >= DELAYS_MS[level]
