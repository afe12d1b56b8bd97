"""The worked examples: queues are indices into the sorted list."""

from __future__ import annotations

import random

import pytest

from remoting.allocation import STRATEGIES, allocate
from remoting.wire.bodies.message_queue import MessageQueue


def numbers(text: str) -> list[list[int]]:
    return [[int(word) for word in part.split() if word != "-"] for part in text.split("/")]


VECTORS = {
    ("AVG", 8, 3): "0 1 2 / 3 4 5 / 6 7",
    ("AVG", 10, 4): "0 1 2 / 3 4 5 / 6 7 / 8 9",
    ("AVG", 16, 5): "0 1 2 3 / 4 5 6 / 7 8 9 / 10 11 12 / 13 14 15",
    ("AVG", 4, 4): "0 / 1 / 2 / 3",
    ("AVG", 4, 6): "0 / 1 / 2 / 3 / - / -",
    ("AVG", 1, 2): "0 / -",
    ("AVG_BY_CIRCLE", 8, 3): "0 3 6 / 1 4 7 / 2 5",
    ("AVG_BY_CIRCLE", 10, 4): "0 4 8 / 1 5 9 / 2 6 / 3 7",
    ("AVG_BY_CIRCLE", 16, 5): "0 5 10 15 / 1 6 11 / 2 7 12 / 3 8 13 / 4 9 14",
    ("AVG_BY_CIRCLE", 4, 4): "0 / 1 / 2 / 3",
    ("AVG_BY_CIRCLE", 4, 6): "0 / 1 / 2 / 3 / - / -",
    ("AVG_BY_CIRCLE", 1, 2): "0 / -",
}


@pytest.mark.parametrize(("case", "expected"), VECTORS.items(), ids=lambda case: str(case))
def test_allocation_follows_the_vectors(case: tuple[str, int, int], expected: str) -> None:
    strategy, queue_count, member_count = case
    queues = [MessageQueue("orders", "broker-a", queue_id) for queue_id in range(queue_count)]
    members = [f"10.0.0.{number:03}@1" for number in range(member_count)]
    owned = [sorted(queue.queue_id for queue in allocate(strategy, queues, members, member)) for member in members]
    assert owned == numbers(expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(20))
def test_members_that_see_the_same_share_every_queue_once_whatever_the_order(strategy: str, seed: int) -> None:
    chance = random.Random(seed)
    queues = [
        MessageQueue("orders", f"broker-{name}", queue_id) for name in "abc" for queue_id in range(chance.randrange(12))
    ]
    members = [f"host-{number}@{chance.randrange(100)}" for number in range(chance.randrange(1, 9))]
    owned = []
    for member in members:
        chance.shuffle(queues)
        seen = list(members)
        chance.shuffle(seen)
        owned += allocate(strategy, queues, seen, member)
    assert sorted(owned) == sorted(queues)


def test_members_are_ordered_as_java_orders_them() -> None:
    """By UTF-16 units: a character beyond the basic plane comes before U+FFFD."""
    queues = [MessageQueue("orders", "broker-a", queue_id) for queue_id in range(2)]
    assert [queue.queue_id for queue in allocate("AVG", queues, ["�", "\U00010000"], "\U00010000")] == [0]


def test_a_client_that_is_no_member_owns_nothing() -> None:
    queues = [MessageQueue("orders", "broker-a", 0)]
    assert allocate("AVG", queues, ["somebody"], "me") == frozenset()
    assert allocate("AVG", [], ["me"], "me") == frozenset()
    assert allocate("AVG", queues, [], "me") == frozenset()


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(KeyError):
        allocate("BY_TASTE", [], ["me"], "me")
