"""How long the broker kept a message that its listener refused, whenever the consumer read it then.

A member that has just joined may read its retry topic up to 30 s late: Apache's broker refuses pulls with a newer
subscription than its last heartbeat told of (SUBSCRIPTION_NOT_LATEST), and Apache's client sends no heartbeat for it
while another of its threads is sending one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

# Of the first three retries, unless the listener asks for others.
RETURNS_AFTER_S = (10.0, 30.0, 60.0)


def return_delays_s(deliveries: Iterable[dict[str, Any]]) -> list[float]:
    """From each delivery (`at_ms`) until the broker stored the next (`stored_ms`)."""
    return [(after["stored_ms"] - before["at_ms"]) / 1000 for before, after in itertools.pairwise(deliveries)]


def assert_first_delays(deliveries: Iterable[dict[str, Any]]) -> None:
    """Each retry waited for as long as its number says, and not yet for as long as the one after it."""
    for delay_s, (expected_s, next_s) in zip(
        return_delays_s(deliveries), itertools.pairwise(RETURNS_AFTER_S), strict=False
    ):
        assert expected_s <= delay_s < next_s
