"""Whom a cycle of polling asks: the plan, within a budget of requests. Pure.

Topics are asked for their ends, groups for their members, each by one request to every master that has it. So much of
the budget goes to groups in turn that all of them have been asked within TURN_CYCLES, as far as their share reaches; in
a further share come those that somebody looks at or that are in trouble, so that these never take the others' turns.
Topics have what is left, half of it in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

# A turn over all groups; with cycles of 15 s members that joined are seen within 90 s, up to 1,000 groups on a master.
TURN_CYCLES = 6
# Groups that are asked in a cycle even where there are fewer topics.
GROUPS_MIN = 50
# Of the budget, at most so much goes to groups in turn, unless topics leave it over; and so much to those out of turn.
GROUP_SHARE = 1 / 2
URGENT_GROUP_SHARE = 1 / 8
# Of what is left for topics, so much may go to those out of turn.
URGENT_TOPIC_SHARE = 1 / 2

Homes = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Cursors:
    """The last topic and the last group that were asked."""

    topic: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Urgent:
    """Groups, and the topics that they read, that are asked in every cycle, the most urgent first.

    `looked_at_count`: so many of the groups, the first ones, are on a page that is open.
    """

    groups: Sequence[str] = ()
    topics: Sequence[str] = ()
    looked_at_count: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """Pairs (address, name) to ask, and up to where everybody's turn has come."""

    topics: Sequence[tuple[str, str]]
    groups: Sequence[tuple[str, str]]
    cursors: Cursors


def turn(topics: Homes, groups: Homes, master_count: int, budget: int, cursors: Cursors, urgent: Urgent) -> Turn:
    """Returns whom to ask with `budget` requests. `topics`, `groups`: name → addresses of those to ask for it.

    Groups are at least as many as topics and masters, or GROUPS_MIN: so few groups are seen often, and many cost in
    the order of brokers and topics until their turn would take longer than TURN_CYCLES.
    """
    topic_count, group_count = _pair_count(topics, topics), _pair_count(groups, groups)
    wanted = max(GROUPS_MIN, topic_count + master_count, ceil(group_count / TURN_CYCLES))
    first_groups = _fitting(groups, urgent.groups, int(budget * URGENT_GROUP_SHARE))
    left = max(0, budget - _pair_count(groups, first_groups))
    of_groups = min(wanted, left, max(int(budget * GROUP_SHARE), left - topic_count))
    asked_groups, group = _pairs(groups, cursors.group, of_groups, first_groups)
    left = max(0, budget - len(asked_groups))
    first_topics = _fitting(topics, urgent.topics, int(left * URGENT_TOPIC_SHARE))
    of_topics = left - _pair_count(topics, first_topics)
    asked_topics, topic = _pairs(topics, cursors.topic, of_topics, first_topics)
    return Turn(asked_topics, asked_groups, Cursors(topic, group))


def in_turn(names: Iterable[str], cursor: str) -> list[str]:
    """Returns the names, those after `cursor` first, then from the beginning: everyone's turn comes.

    >>> in_turn(["a", "b", "c", "d"], "b")
    ['c', 'd', 'a', 'b']
    """
    ordered = sorted(names)
    return [name for name in ordered if name > cursor] + [name for name in ordered if name <= cursor]


def _pair_count(homes: Homes, names: Iterable[str]) -> int:
    return sum(len(homes[name]) for name in names)


def _fitting(homes: Homes, names: Iterable[str], count: int) -> list[str]:
    """Returns the names, in their order, that can be asked for whole with `count` requests."""
    fitting: list[str] = []
    for name in dict.fromkeys(names):
        if name in homes and len(homes[name]) <= count:
            fitting.append(name)
            count -= len(homes[name])
    return fitting


def _pairs(homes: Homes, cursor: str, count: int, first: Sequence[str]) -> tuple[list[tuple[str, str]], str]:
    """Returns (address, name) of the `first` names, and of others in turn, and the last name whose turn it was.

    As many whole names as the count of further pairs allows: half a topic would be read as a shrunken one.
    """
    asked = dict.fromkeys(first)
    for name in in_turn(homes, cursor):
        if name not in asked:
            if len(homes[name]) > count:
                break
            count -= len(homes[name])
            asked[name] = None
        cursor = name
    return [(address, name) for name in asked for address in homes[name]], cursor
