"""Pulls that wait: what wakes them, what ends them, what bounds them."""

from __future__ import annotations

import asyncio
import dataclasses
import logging

import pytest

from broker.engine.serving import held_pulls as held_pulls_module
from broker.engine.serving.held_pulls import HeldPull, HeldPulls
from broker.engine.store.values import Appended
from remoting.complaints import ComplaintLog
from tests.support.broker_parts import Wire
from tests.support.logged import lines_of
from tests.support.waiting import eventually

LONG_S = 60.0


class Holding:
    """Held pulls over queues whose max offset the test sets; notes who is resumed."""

    def __init__(self, held_max: int = 100) -> None:
        self.max_offsets: dict[tuple[str, int], int] = {}
        self.resumed: list[HeldPull] = []
        self.properties: dict[str, str] | None = {}
        self.properties_read = 0
        self.disk_is_gone = False
        self.pulls = HeldPulls(
            lambda topic, queue_id: self.max_offsets.get((topic, queue_id), 0),
            self._properties_of,
            ComplaintLog(),
            held_max,
        )

    def _properties_of(self, appended: Appended) -> dict[str, str] | None:
        self.properties_read += 1
        if self.disk_is_gone:
            raise OSError("the disk is gone")
        return self.properties

    def pull(self, wire, topic="orders", queue_id=0, queue_offset=0, matches=None, wait_s=LONG_S) -> HeldPull:
        deadline_s = asyncio.get_running_loop().time() + wait_s
        return HeldPull(topic, queue_id, queue_offset, matches, wire, deadline_s, self.resumed.append, None)

    def append(self, topic="orders", queue_id=0, queue_offset=0, tags_code=0) -> None:
        self.max_offsets[(topic, queue_id)] = queue_offset + 1
        self.pulls.appended([Appended(topic, queue_id, queue_offset, 0, 100, 0, tags_code)])


@pytest.fixture
async def holding():
    holding = Holding()
    yield holding
    holding.pulls.stop()


@pytest.fixture
def wire():
    return Wire()


async def test_held_pull_is_resumed_by_a_message_in_its_queue(holding, wire):
    pull = holding.pull(wire)
    assert holding.pulls.hold(pull)
    holding.append()

    assert holding.resumed == []  # not within the append
    await eventually(lambda: holding.resumed == [pull])
    assert len(holding.pulls) == 0


@pytest.mark.parametrize(
    "elsewhere", [{"topic": "other"}, {"queue_id": 1}, {"queue_offset": 2}], ids=["topic", "queue", "earlier offset"]
)
async def test_held_pull_is_left_alone_by_a_message_elsewhere(holding, wire, elsewhere):
    holding.pulls.hold(holding.pull(wire, queue_offset=3))
    holding.append(**elsewhere)
    await asyncio.sleep(0.01)

    assert holding.resumed == []
    assert len(holding.pulls) == 1


async def test_properties_are_read_once_a_message_and_only_for_who_filters_by_them(holding, wire, monkeypatch):
    # The time that filtering may take does not pass.
    monkeypatch.setattr(held_pulls_module, "perf_counter", lambda: 0.0)
    holding.pulls.hold(holding.pull(wire))
    holding.append()
    assert holding.properties_read == 0

    holding.properties = {"size": "5"}
    for size in ("5", "6", "7"):
        pull = holding.pull(wire)
        pull.properties_match = {"size": size}.__eq__
        holding.pulls.hold(pull)
    holding.append()
    assert holding.properties_read == 1
    assert len(holding.pulls) == 2


async def test_held_pull_is_resumed_when_the_properties_cannot_be_read(holding, wire):
    pull = holding.pull(wire)
    pull.properties_match = lambda properties: False
    holding.pulls.hold(pull)
    holding.disk_is_gone = True
    holding.append()

    await eventually(lambda: holding.resumed == [pull])


async def test_held_pull_is_left_alone_by_a_message_that_its_filter_keeps_out(holding, wire):
    pull = holding.pull(wire, matches=frozenset({7}).__contains__)
    holding.pulls.hold(pull)
    holding.append(tags_code=6)
    await asyncio.sleep(0.01)
    assert holding.resumed == []

    holding.append(queue_offset=1, tags_code=7)
    await eventually(lambda: holding.resumed == [pull])


async def test_held_pull_is_resumed_once_by_many_messages(holding, wire):
    pull = holding.pull(wire)
    holding.pulls.hold(pull)
    for number in range(5):
        holding.append(queue_offset=number)

    await eventually(lambda: holding.resumed)
    assert holding.resumed == [pull]


async def test_held_pulls_of_one_queue_are_all_resumed(holding, wire):
    pulls = [holding.pull(wire), holding.pull(wire)]
    for pull in pulls:
        holding.pulls.hold(pull)
    holding.append()

    await eventually(lambda: holding.resumed == pulls)


async def test_held_pull_is_resumed_at_its_deadline_the_earliest_first(holding, wire):
    early, late = holding.pull(wire, queue_id=1, wait_s=0.02), holding.pull(wire, wait_s=0.06)
    holding.pulls.hold(late)
    holding.pulls.hold(early)

    await eventually(lambda: holding.resumed == [early, late])
    assert asyncio.get_running_loop().time() >= late.deadline_s - 0.001


async def test_held_pull_is_resumed_by_the_sweep_when_its_queue_grew_past_the_filter(holding, wire, monkeypatch):
    monkeypatch.setattr(held_pulls_module, "SWEEP_INTERVAL_S", 0.02)
    filtered, at_the_end = holding.pull(wire, matches=lambda _: False), holding.pull(wire, queue_id=1)
    holding.pulls.start()
    holding.pulls.hold(filtered)
    holding.pulls.hold(at_the_end)
    holding.append()

    await eventually(lambda: holding.resumed == [filtered])


async def test_held_pulls_refuse_beyond_their_limit(wire):
    holding = Holding(held_max=2)

    assert [holding.pulls.hold(holding.pull(wire)) for _ in range(3)] == [True, True, False]
    holding.pulls.stop()


async def test_held_pulls_refuse_a_peer_that_is_gone(holding, wire):
    wire.is_open = False

    assert not holding.pulls.hold(holding.pull(wire))


async def test_held_pulls_are_dropped_with_their_connection(holding, wire):
    other = Wire()
    theirs = holding.pull(other)
    holding.pulls.hold(holding.pull(wire))
    holding.pulls.hold(theirs)
    holding.pulls.connection_lost(wire)
    holding.append()

    await eventually(lambda: holding.resumed)
    assert holding.resumed == [theirs]


async def test_held_pull_of_a_peer_that_does_not_read_waits_until_its_deadline(holding, wire):
    wire.is_write_paused = True
    holding.pulls.hold(holding.pull(wire))
    holding.append()
    await asyncio.sleep(0.01)
    assert holding.resumed == []

    pull = holding.pull(wire, wait_s=0.05)
    holding.pulls.hold(pull)
    holding.append(queue_offset=1)
    await eventually(lambda: holding.resumed == [pull])
    assert asyncio.get_running_loop().time() >= pull.deadline_s - 0.001


async def test_held_pulls_forget_the_answered_ones(holding, wire, monkeypatch):
    monkeypatch.setattr(held_pulls_module, "STALE_DEADLINES_MAX", 4)
    for number in range(100):
        holding.pulls.hold(holding.pull(wire, queue_offset=number))
        holding.append(queue_offset=number)
        await asyncio.sleep(0)

    assert len(holding.pulls._deadlines) < 10


async def test_held_pulls_of_one_connection_are_bounded(holding, wire, monkeypatch):
    monkeypatch.setattr(held_pulls_module, "HELD_PULLS_PER_CONNECTION_MAX", 2)
    assert [holding.pulls.hold(holding.pull(wire)) for _ in range(3)] == [True, True, False]
    assert holding.pulls.hold(holding.pull(Wire()))
    holding.pulls.connection_lost(wire)
    assert holding.pulls.hold(holding.pull(wire))


class ComparedPull(HeldPull):
    """Counts how often a pull is compared with another: to find one in a list takes as many as there are before it."""

    comparisons = 0
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        ComparedPull.comparisons += 1
        return self is other


async def test_held_pulls_leave_their_queue_at_once_however_many_wait_there(wire, monkeypatch):
    """One by one out of a list, a client's goodbye stopped the broker for 17 s."""
    monkeypatch.setattr(ComparedPull, "comparisons", 0)
    holding = Holding(held_max=10_000)
    for _ in range(10_000):
        held = holding.pull(wire)
        fields = (getattr(held, field.name) for field in dataclasses.fields(held) if field.init)
        holding.pulls.hold(ComparedPull(*fields))
    holding.pulls.connection_lost(wire)
    assert len(holding.pulls) == 0
    assert ComparedPull.comparisons < 10 * 10_000


async def test_held_pulls_that_wake_together_let_others_in_between(holding, wire, monkeypatch):
    monkeypatch.setattr(held_pulls_module, "RESUMED_AT_ONCE_MAX", 3)
    # The time that resuming may take does not pass.
    monkeypatch.setattr(held_pulls_module, "perf_counter", lambda: 0.0)
    pulls = [holding.pull(wire) for _ in range(7)]
    for pull in pulls:
        holding.pulls.hold(pull)
    holding.append()
    counts = []
    for _ in range(3):
        await asyncio.sleep(0)
        counts.append(len(holding.resumed))
    assert counts == [3, 6, 7]
    assert holding.resumed == pulls


async def test_held_pull_that_fails_does_not_take_the_others_answers(holding, wire, caplog):
    def fails(pull: HeldPull) -> None:
        raise OSError("Input/output error")

    first, second = holding.pull(wire), holding.pull(wire)
    first.resume = fails
    for pull in (first, second):
        holding.pulls.hold(pull)
    holding.append()
    await eventually(lambda: holding.resumed == [second])
    assert "a pull of orders queue 0" in caplog.text


async def test_held_pulls_complain_once_of_a_queue_that_cannot_be_read_and_not_for_each_pull(holding, wire, caplog):
    def fails(pull: HeldPull) -> None:
        failed.append(pull)
        raise OSError("Input/output error")

    failed: list[HeldPull] = []
    for _ in range(20):
        pull = holding.pull(wire)
        pull.resume = fails
        holding.pulls.hold(pull)
    holding.append()
    await eventually(lambda: len(failed) == 20)
    assert len([line for line in lines_of(caplog, "remoting", logging.ERROR) if "a pull of orders" in line]) == 1


async def test_held_pulls_with_long_expressions_are_bounded_by_their_memory(holding, monkeypatch):
    monkeypatch.setattr(held_pulls_module, "HELD_BYTES_MAX", 10_000)
    monkeypatch.setattr(held_pulls_module, "HELD_BYTES_PER_CONNECTION_MAX", 6_000)

    def heavy(wire: Wire) -> HeldPull:
        pull = holding.pull(wire)
        pull.held_bytes = 3_000
        return pull

    one, other, third = Wire(), Wire(), Wire()
    assert [holding.pulls.hold(heavy(one)) for _ in range(3)] == [True, True, False]
    assert [holding.pulls.hold(heavy(other)) for _ in range(2)] == [True, False]
    assert not holding.pulls.hold(heavy(third)), "those of all together"
    holding.pulls.connection_lost(one)
    assert holding.pulls.hold(heavy(third))


async def test_held_pull_whose_peer_stopped_reading_since_it_was_woken_waits_on(holding, wire):
    pull = holding.pull(wire)
    holding.pulls.hold(pull)
    holding.append()
    wire.is_write_paused = True
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert holding.resumed == []
    assert len(holding.pulls) == 1

    wire.is_write_paused = False
    holding.append(queue_offset=1)
    await eventually(lambda: holding.resumed == [pull])


async def test_held_pulls_whose_filters_take_too_long_are_woken_to_look_themselves(holding, wire, monkeypatch):
    monkeypatch.setattr(held_pulls_module, "FILTERING_S_MAX", 0.0)
    asked = []
    for _ in range(3):
        pull = holding.pull(wire)
        pull.properties_match = lambda properties: asked.append(properties) or False
        holding.pulls.hold(pull)
    beyond = holding.pull(wire, queue_offset=7)
    beyond.properties_match = lambda properties: True
    holding.pulls.hold(beyond)
    holding.append()
    await eventually(lambda: len(holding.resumed) == 3)
    assert asked == []
    assert len(holding.pulls) == 1, "the message is none of its"


async def test_held_pulls_that_wake_together_are_resumed_in_turns_of_bounded_time(holding, wire, monkeypatch):
    monkeypatch.setattr(held_pulls_module, "RESUMING_S_MAX", 0.0)
    for _ in range(5):
        holding.pulls.hold(holding.pull(wire))
    holding.append()
    seen = []
    while len(holding.resumed) < 5:
        await asyncio.sleep(0)
        seen.append(len(holding.resumed))
    assert sorted(set(seen) - {0}) == [1, 2, 3, 4, 5]
