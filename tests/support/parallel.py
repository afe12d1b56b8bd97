"""How a parallel run (`pytest -n`) distributes the tests over its workers.

A worker gets a whole file, so that what a file's tests share is started once; of files whose tests share nothing and
take minutes each, it gets a test. Files that share a cluster of Apache RocketMQ and its clients, or a Spark session, go
to one worker together. Files that mostly wait are distributed first, so that no worker is still waiting when the others
have ended.
"""

from __future__ import annotations

import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# Groups of files by the beginning of their names, in the order in which they are distributed.
TOGETHER = (
    ("contract", ("tests/journeys/test_contract_",)),
    ("apache clients", ("tests/journeys/test_apache_clients", "tests/journeys/test_our_client_on_apache")),
    ("go client", ("tests/journeys/test_go_client",)),
    ("librocketmq", ("tests/journeys/test_librocketmq",)),
    ("spark", ("tests/mqadmin/reports/spark/", "tests/journeys/test_spark_source")),
    ("consumer", ("tests/journeys/test_consumer.py", "tests/journeys/test_consumer_late")),
)
# Their tests go to any worker, one by one; they come before what is short.
ALONE = ("tests/mqadmin/test_postgres.py",)
# Then by room: journeys wait for processes, crash tests and simulations work for long, all else is short.
ROOMS = ("tests/journeys/", "tests/crash/", "tests/simulation/", "tests/")


def workers() -> int:
    """Returns how many workers `-n auto` starts: one more than cores, since a journey mostly waits."""
    return (os.cpu_count() or 1) + 1


def scope_of(nodeid: str) -> str:
    """Returns what must run in one worker together with the test: the name of its group, its file, or it alone."""
    file = nodeid.partition("::")[0]
    if file in ALONE:
        return nodeid
    for name, beginnings in TOGETHER:
        if file.startswith(beginnings):
            return name
    return file


def sort_key(nodeid: str) -> int:
    """Returns a number to sort tests by: the smaller, the earlier they run."""
    groups = [name for name, _ in TOGETHER]
    scope = scope_of(nodeid)
    if scope in groups:
        return groups.index(scope)
    if scope.startswith(ALONE):
        return len(groups)
    return len(groups) + 1 + next(number for number, room in enumerate(ROOMS) if scope.startswith(room))


class FilesTogether(LoadScopeScheduling):
    """Distributes files, and groups of files, in the order of the collection, which the workers sort by `sort_key`."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
