"""The planner: worked cases, and a model on random histories of offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remoting.spark.spans import SPANS_MAX, Span, limited, plan, reached, split

QUEUES = st.sampled_from([f"{broker}:{number}" for broker in "ab" for number in range(3)])
OFFSETS = st.dictionaries(QUEUES, st.integers(0, 200), max_size=6)


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Offsets that were read up to, then the ends and first readable offsets of a cluster that went on."""
    start = draw(OFFSETS)
    grown = {queue: offset + draw(st.integers(0, 50)) for queue, offset in start.items() if draw(st.booleans())}
    new = draw(OFFSETS)
    end = {**new, **grown}
    firsts = {queue: draw(st.integers(0, stop)) for queue, stop in end.items()}
    return start, end, firsts


def covered(spans: list[Span] | tuple[Span, ...]) -> list[tuple[str, int]]:
    return [(span.queue, offset) for span in spans for offset in range(span.start, span.end)]


@given(histories())
def test_every_offset_is_read_or_lost_once(history: tuple[dict[str, int], dict[str, int], dict[str, int]]) -> None:
    start, end, firsts = history
    planned = plan(start, end, firsts)
    read, lost = covered(planned.spans), covered(planned.lost)
    wanted = {
        (queue, offset)
        for queue, stop in end.items()
        for offset in range(start.get(queue, firsts[queue]), stop)
        if start.get(queue, 0) <= stop
    }
    remade = {queue for queue, stop in end.items() if start.get(queue, 0) > stop}
    assert len(read) == len(set(read))
    assert {place for place in read if place[0] not in remade} == {
        place for place in wanted if place[1] >= firsts[place[0]]
    }
    assert {place for place in lost if place[0] not in remade} == {
        place for place in wanted if place[1] < firsts[place[0]]
    }
    for queue in remade:
        assert [offset for name, offset in read if name == queue] == list(range(firsts[queue], end[queue]))


@given(st.lists(st.tuples(QUEUES, st.integers(0, 99), st.integers(1, 99))), st.none() | st.integers(1, 40))
def test_a_split_covers_the_same_in_even_parts(raw: list[tuple[str, int, int]], records_max: int | None) -> None:
    whole = [Span(queue, start, start + count) for queue, start, count in raw]
    parts = split(whole, records_max)
    assert covered(parts) == covered(whole)
    if records_max is not None:
        assert all(0 < len(part) <= records_max for part in parts)


@given(histories(), st.integers(1, 300))
def test_a_limited_batch_is_no_larger_and_batches_reach_the_end(
    history: tuple[dict[str, int], dict[str, int], dict[str, int]], rows_max: int
) -> None:
    start, end, firsts = history
    end = reached(start, end)
    wanted = plan(start, end, firsts)
    read: list[tuple[str, int]] = []
    while start != end:
        moved = {queue: firsts.get(queue, 0) for queue, stop in end.items() if start.get(queue) != stop}
        until = limited(start, end, moved, rows_max)
        batch = plan(start, {queue: until[queue] for queue in until if start.get(queue) != until[queue]}, firsts)
        assert 0 <= len(covered(batch.spans)) <= rows_max
        read += covered(batch.spans)
        assert until != start, "no batch may stand still while something waits"
        start = until
    assert sorted(read) == sorted(covered(wanted.spans))


def test_shares_go_by_what_waits() -> None:
    nothing_read = {"a:0": 0, "a:1": 0}
    assert limited(nothing_read, {"a:0": 90, "a:1": 10}, nothing_read, 10) == {"a:0": 9, "a:1": 1}


def test_a_queue_that_nobody_names_now_stays_where_it_is() -> None:
    assert reached({"a:0": 5, "b:0": 7}, {"a:0": 9}) == {"a:0": 9, "b:0": 7}


def test_too_many_parts_are_refused_before_they_are_made() -> None:
    with pytest.raises(ValueError, match=r"makes 10000000000 partitions; 100000 are allowed"):
        split([Span("a:0", 0, 10_000_000_000)], 1)
    assert SPANS_MAX == 100_000
