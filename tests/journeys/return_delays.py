"""How long a broker was asked to keep a message that its listener refused, and kept it.

Read from the broker, not from when its consumer sees the message again: one that has just joined may read its retry
topic up to 30 s late. Apache's broker refuses pulls with a newer subscription than its last heartbeat told of
(SUBSCRIPTION_NOT_LATEST), and Apache's client sends no heartbeat for it while another of its threads is sending one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remoting.wire.names import SCHEDULE_TOPIC
from tests.support.reading import all_messages

# Of the levels that the tests use.
DELAYS_MS = {1: 1000, 3: 10_000, 4: 30_000}
# Of the first retries, unless the listener asks for others.
FIRST_LEVELS = (3, 4)


def assert_delayed(
    address: str, unique_key: str, failed_ms: Sequence[int], returned_ms: Sequence[int], levels: Sequence[int]
) -> None:
    """`failed_ms`: when its listener got the message, for each return; `returned_ms`: when the broker stored those."""
    waits = sorted(
        (message.store_timestamp_ms, level)
        for level in DELAYS_MS
        for message in all_messages(address, SCHEDULE_TOPIC, level - 1)
        if message.unique_key == unique_key
    )
    assert [level for _, level in waits] == list(levels)
    for failed, returned, level in zip(failed_ms, returned_ms, levels, strict=True):
        assert returned - failed >= DELAYS_MS[level]


def assert_deliveries_delayed(address: str, deliveries: list[dict[str, Any]], levels: Sequence[int]) -> None:
    """The same of a message as Apache's clients show its deliveries."""
    failed_ms = [message["at_ms"] for message in deliveries[:-1]]
    returned_ms = [message["stored_ms"] for message in deliveries[1:]]
    assert_delayed(address, deliveries[0]["msg_id"], failed_ms, returned_ms, levels)
