"""How a parallel run (`pytest -n`) deals out the tests to its workers.

A worker gets a whole file, so that what a file's tests share is started once. Files that share a cluster of Apache
RocketMQ and its clients go to one worker together. Files that mostly wait are dealt out first, so that no worker is
still waiting when the others have ended.
"""

from __future__ import annotations

import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# Groups of files by the beginning of their names, in the order of being dealt out.
TOGETHER = (
    ("contract", ("tests/journeys/test_contract_",)),
    ("apache clients", ("tests/journeys/test_apache_clients", "tests/journeys/test_our_client_on_apache")),
    ("go client", ("tests/journeys/test_go_client",)),
    ("librocketmq", ("tests/journeys/test_librocketmq",)),
    ("consumer", ("tests/journeys/test_consumer.py", "tests/journeys/test_consumer_late")),
)
# Then by room: journeys wait for processes, crash tests and simulations work for long, all else is short.
ROOMS = ("tests/journeys/", "tests/crash/", "tests/simulation/", "tests/")


def workers() -> int:
    """Returns how many workers `-n auto` starts: one more than cores, since a journey mostly waits."""
    return (os.cpu_count() or 1) + 1


def unit_of(nodeid: str) -> str:
    """Returns what must run in one worker together with the test: the name of its group, or its file."""
    file = nodeid.partition("::")[0]
    for name, beginnings in TOGETHER:
        if file.startswith(beginnings):
            return name
    return file


def place_of(nodeid: str) -> int:
    """Returns a number to sort tests by: the smaller, the earlier they are dealt out."""
    units = [name for name, _ in TOGETHER]
    unit = unit_of(nodeid)
    if unit in units:
        return units.index(unit)
    return len(units) + next(number for number, room in enumerate(ROOMS) if unit.startswith(room))


class Dealing(LoadScopeScheduling):
    """Deals out the units in the order of the collection, which `place_of` has sorted in the workers."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
