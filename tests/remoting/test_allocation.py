"""The worked examples, and what Apache's own classes answer (tests/golden/allocation.json).

Queues are indices into the sorted list.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remoting.allocation import (
    STRATEGIES,
    AllocationError,
    Configured,
    ConsistentHash,
    MachineRoom,
    MachineRoomNearby,
    Strategy,
    allocate,
    strategy_name,
)
from remoting.wire.bodies.message_queue import MessageQueue

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/allocation.json").read_text())


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


def room_of(name: str) -> str:
    return name.split("-", 1)[0]


def strategy_of(name: str, case: dict[str, Any]) -> str | Strategy:
    made: dict[str, Callable[[], str | Strategy]] = {
        "CONFIG": lambda: Configured(MessageQueue("orders", *queue) for queue in case["configured"]),
        "MACHINE_ROOM": lambda: MachineRoom(case["rooms"]),
        "CONSISTENT_HASH": lambda: ConsistentHash(case["virtual_nodes"]),
    }
    if name.startswith("MACHINE_ROOM_NEARBY-"):
        inner = strategy_of(name.removeprefix("MACHINE_ROOM_NEARBY-"), case)
        chosen = STRATEGIES[inner] if isinstance(inner, str) else inner
        return MachineRoomNearby(chosen, lambda queue: room_of(queue.broker_name), room_of)
    return made.get(name, lambda: name)()


@pytest.mark.parametrize("kind", sorted({case["strategy"] for case in GOLDEN}))
def test_each_strategy_gives_what_apaches_own_gives(kind: str) -> None:
    cases = [case for case in GOLDEN if case["strategy"] == kind]
    assert len(cases) >= 18
    for case in cases:
        queues = sorted(
            MessageQueue("orders", broker, at) for broker, count in case["queues"].items() for at in range(count)
        )
        strategy = strategy_of(kind, case)
        assert strategy_name(strategy) == kind
        members = sorted(case["members"], key=lambda member: member.encode("utf-16-be"))
        owned = [sorted(map(queues.index, allocate(strategy, queues, members, member))) for member in members]
        assert owned == [sorted(numbers(part)[0]) for part in case["owned"].split("/")], case


def test_a_strategy_of_ones_own_gets_sorted_lists_and_may_return_any_iterable() -> None:
    queues = [MessageQueue("orders", "broker-a", queue_id) for queue_id in (2, 0, 1, 0)]

    def mine(given: Any, members: Any, me: str) -> Any:
        assert [queue.queue_id for queue in given] == [0, 1, 2]
        assert members == ["a@1", "b@1"]
        return (given[at] for at in (1, 1))

    assert allocate(mine, queues, ["b@1", "a@1", "b@1"], "b@1") == {MessageQueue("orders", "broker-a", 1)}


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "it returned None; a list of message queues is needed"),
        (7, "it returned 7; a list of message queues is needed"),
        ("queues", "it returned 'queues'; a list of message queues is needed"),
        (MessageQueue("orders", "broker-a", 0), "a list of message queues is needed"),
        ([0], "it returned 0 among the queues"),
        ([MessageQueue("orders", "broker-a", 9)], "queueId=9], which is none of the queues it was given"),
        ([MessageQueue("bills", "broker-a", 0)], "topic=bills"),
    ],
)
def test_a_result_that_cannot_be_owned_is_refused_with_the_strategys_name(result: Any, words: str) -> None:
    def by_taste(queues: Any, members: Any, me: str) -> Any:
        return result

    with pytest.raises(AllocationError, match=r"by_taste cannot be used for 1 queues of topic 'orders'") as raised:
        allocate(by_taste, [MessageQueue("orders", "broker-a", 0)], ["me"], "me")
    assert words in str(raised.value)


def test_a_strategy_that_raises_is_refused_with_its_error() -> None:
    def by_taste(queues: Any, members: Any, me: str) -> Any:
        raise LookupError("no taste")

    with pytest.raises(AllocationError, match=r"by_taste .* LookupError: no taste"):
        allocate(by_taste, [MessageQueue("orders", "broker-a", 0)], ["me"], "me")


def test_a_configured_queue_that_is_gone_is_named() -> None:
    strategy = Configured([MessageQueue("orders", "broker-a", 7), MessageQueue("bills", "broker-a", 0)])
    with pytest.raises(AllocationError, match="queueId=7"):
        allocate(strategy, [MessageQueue("orders", "broker-a", 0)], ["me"], "me")


def test_retries_that_no_configured_list_names_are_shared_evenly() -> None:
    retries = [MessageQueue("%RETRY%billing", "broker-a", 0)]
    strategy = Configured([MessageQueue("orders", "broker-a", 0)])
    assert [len(allocate(strategy, retries, ["a", "b"], member)) for member in ("a", "b")] == [1, 0]
    assert allocate(strategy, [MessageQueue("bills", "broker-a", 0)], ["a"], "a") == frozenset()


@pytest.mark.parametrize("room", ["", None])
def test_a_member_whose_room_is_not_known_is_named(room: Any) -> None:
    strategy = MachineRoomNearby(STRATEGIES["AVG"], lambda queue: "alpha", lambda member: room)
    with pytest.raises(AllocationError, match="the machine room of me is"):
        allocate(strategy, [MessageQueue("orders", "broker-a", 0)], ["me"], "me")


def test_a_negative_number_of_virtual_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 virtual nodes"):
        ConsistentHash(-1)


def test_equal_parameters_make_equal_strategies() -> None:
    """Two listeners of a group may each name theirs."""
    assert MachineRoom(["a", "b"]) == MachineRoom({"b", "a"})
    assert Configured([]) == Configured(())
    assert ConsistentHash() == STRATEGIES["CONSISTENT_HASH"]


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
