"""The bounds of all connections together: which one is cut, and that the others stay."""

from __future__ import annotations

from remoting.memory_budget import MemoryBudget


class FakeConnection:
    def __init__(self, unsent_bytes: int = 0) -> None:
        self.unsent_bytes = unsent_bytes
        self.reasons: list[str] = []

    def cut(self, reason: str) -> None:
        self.reasons.append(reason)


def test_beyond_the_received_bound_the_connection_without_progress_for_longest_is_cut() -> None:
    budget = MemoryBudget(received_bytes_max=100)
    stalled, busy, last = FakeConnection(), FakeConnection(), FakeConnection()
    budget.set_received(stalled, 40, has_progressed=False)
    budget.set_received(busy, 40, has_progressed=False)
    budget.set_received(stalled, 45, has_progressed=False)
    assert not stalled.reasons
    budget.set_received(last, 20, has_progressed=False)
    assert ["105 bytes" in reason for reason in stalled.reasons] == [True]
    assert not busy.reasons
    assert not last.reasons
    assert budget.received_bytes == 60


def test_a_connection_that_progresses_is_not_the_oldest_any_more() -> None:
    budget = MemoryBudget(received_bytes_max=100)
    first, second = FakeConnection(), FakeConnection()
    budget.set_received(first, 50, has_progressed=False)
    budget.set_received(second, 50, has_progressed=False)
    budget.set_received(first, 55, has_progressed=True)
    assert second.reasons
    assert not first.reasons


def test_beyond_the_unsent_bound_the_connection_with_most_is_cut() -> None:
    budget = MemoryBudget(unsent_bytes_max=100)
    small, large = FakeConnection(40), FakeConnection(70)
    budget.set_unsent(small, 40)
    budget.set_unsent(large, 70)
    assert large.reasons
    assert not small.reasons
    assert budget.unsent_bytes == 40


def test_bytes_that_peers_have_read_meanwhile_are_not_counted() -> None:
    budget = MemoryBudget(unsent_bytes_max=100)
    reading, other = FakeConnection(90), FakeConnection(90)
    budget.set_unsent(reading, 90)
    reading.unsent_bytes = 0
    budget.set_unsent(other, 90)
    assert not reading.reasons
    assert not other.reasons
    assert budget.unsent_bytes == 90


def test_forgetting_a_connection_subtracts_all_it_held_once() -> None:
    budget = MemoryBudget()
    connection = FakeConnection(5)
    budget.set_received(connection, 10, has_progressed=False)
    budget.set_unsent(connection, 5)
    budget.forget(connection)
    budget.forget(connection)
    assert (budget.received_bytes, budget.unsent_bytes) == (0, 0)
