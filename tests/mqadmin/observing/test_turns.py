"""The plan of a cycle of polling, over simulated time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mqadmin.observing.exact_waiting import READS_PER_CYCLE_MAX
from mqadmin.observing.polling import REQUESTS_PER_CYCLE_MAX
from mqadmin.observing.polling_cycle import POLL_INTERVAL_S
from mqadmin.observing.turns import TURN_CYCLES, Cursors, Homes, Turn, Urgent, in_turn, turn

# The name server, and a master's tables.
TABLE_REQUESTS = 4


def named(what: str, count: int, masters: Sequence[str] = ("m1",)) -> dict[str, Sequence[str]]:
    return {f"{what}-{number:05}": masters for number in range(count)}


def in_cycles(topics: Homes, groups: Homes, count: int, urgent: Urgent, *, master_count: int = 1) -> list[Turn]:
    cursors, cycles = Cursors(), []
    for _ in range(count):
        budget = REQUESTS_PER_CYCLE_MAX - 1 - (TABLE_REQUESTS - 1) * master_count
        budget -= READS_PER_CYCLE_MAX if urgent.groups else 0
        cycles.append(turn(topics, groups, master_count, budget, cursors, urgent))
        assert len(cycles[-1].topics) + len(cycles[-1].groups) <= budget
        cursors = cycles[-1].cursors
    return cycles


def longest_wait_s(names: Homes, asked: Sequence[Sequence[tuple[str, str]]]) -> int:
    """Returns the longest time between two cycles that ask for a name; of one that is never asked, all the time."""
    last = dict.fromkeys(names, -1)
    longest = dict.fromkeys(names, 0)
    for number, pairs in enumerate((*asked, [("", name) for name in names])):
        for name in {name for _, name in pairs}:
            longest[name] = max(longest[name], number - last[name])
            last[name] = number
    return max(longest.values()) * POLL_INTERVAL_S


@pytest.mark.parametrize("urgent_count", [0, 10, 200, 1000], ids=lambda count: f"{count} urgent")
@pytest.mark.parametrize("topic_count", [1, 100])
def test_members_of_any_of_1000_groups_are_asked_for_every_90_s_however_many_groups_are_urgent(
    topic_count: int, urgent_count: int
) -> None:
    groups = named("group", 1000)
    retries = {f"%RETRY%{group}": homes for group, homes in groups.items()}
    topics = named("topic", topic_count) | retries
    urgent = Urgent(list(groups)[:urgent_count], list(topics)[: 2 * urgent_count])
    cycles = in_cycles(topics, groups, 24, urgent)
    assert longest_wait_s(groups, [cycle.groups for cycle in cycles]) <= TURN_CYCLES * POLL_INTERVAL_S <= 90
    ends_within_s = 300 if urgent_count else 150
    assert longest_wait_s(topics, [cycle.topics for cycle in cycles]) <= ends_within_s
    first = set(list(groups)[: min(urgent_count, 40)])
    assert all({name for _, name in cycle.groups} >= first for cycle in cycles), "who matters is asked in every cycle"


def test_where_there_are_more_groups_than_the_budget_reaches_all_have_their_turn_later() -> None:
    groups = named("group", 10_000)
    cycles = in_cycles(named("topic", 1000), groups, 110, Urgent())
    assert longest_wait_s(groups, [cycle.groups for cycle in cycles]) <= 51 * POLL_INTERVAL_S


def test_what_topics_leave_over_groups_may_have() -> None:
    groups = named("group", 1000, ("m1", "m2"))
    cycles = in_cycles(named("topic", 20, ("m1", "m2")), groups, 12, Urgent(), master_count=2)
    assert longest_wait_s(groups, [cycle.groups for cycle in cycles]) <= TURN_CYCLES * POLL_INTERVAL_S


def test_a_name_is_asked_for_at_all_of_its_masters_or_at_none() -> None:
    groups = named("group", 99, ("m1", "m2", "m3"))
    for cycle in in_cycles(named("topic", 50, ("m1", "m2", "m3")), groups, 5, Urgent(["group-00050"])):
        for name in {name for _, name in cycle.groups}:
            assert [address for address, asked in cycle.groups if asked == name] == ["m1", "m2", "m3"]


def test_few_groups_are_asked_in_every_cycle() -> None:
    groups = named("group", 60)
    assert longest_wait_s(groups, [cycle.groups for cycle in in_cycles(named("topic", 70), groups, 5, Urgent())]) == 15


def test_everybody_gets_a_turn() -> None:
    names = ["a", "b", "c", "d"]
    assert in_turn(names, "") == ["a", "b", "c", "d"]
    assert in_turn(names, "b") == ["c", "d", "a", "b"]
    assert in_turn(names, "d") == ["a", "b", "c", "d"]
