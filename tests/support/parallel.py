"""How a parallel run (`pytest -n`) distributes the tests over its workers.

A worker gets a whole file, so that what a file's tests share is started once; of files whose tests share nothing and
take minutes each, it gets a test. Files that share a cluster of Apache RocketMQ and its clients, or a Spark session, go
to one worker together. Files that mostly wait are distributed first, so that no worker is still waiting when the others
have ended. Before all else come those that use the shared brokers of Apache's, then those that use its clients alone: a
worker ends either with the last test that uses them, since each broker takes a thirtieth of a core while idle. One
worker computes with Spark meanwhile: these tests leave a third of the cores' time unused.

Quick tests have a way of their own (tests/support/shares.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from enum import IntEnum

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling


class Uses(IntEnum):
    """What tests use of Apache's, in the order in which they run."""

    BROKERS = 0
    CLIENTS = 1
    NEITHER = 2


# Fixtures of tests/journeys/conftest.py that start these for a whole session, some of them by their parameter.
STARTED_BY = {
    Uses.BROKERS: {"apache_rocketmq", "old_apache_rocketmq", "cluster", "every_cluster"},
    Uses.CLIENTS: {"java_process", "java_process_5_4_0", "java_process_4_9_8", "go_processes"},
}
# What parameters of fixtures call the brokers, also where the fixture asks for them by that name while it runs.
NAMED = {"apache", "old_apache"}
# Groups of files by the beginning of their names, in the order in which they are distributed.
TOGETHER = (
    ("contract", ("tests/journeys/test_contract_",)),
    ("spark", ("tests/mqadmin/reports/spark/", "tests/journeys/test_browser_reports")),
    ("apache clients", ("tests/journeys/test_apache_clients", "tests/journeys/test_our_client_on_apache")),
    ("go client", ("tests/journeys/test_go_client",)),
    ("librocketmq", ("tests/journeys/test_librocketmq",)),
    ("consumer", ("tests/journeys/test_consumer.py", "tests/journeys/test_consumer_late")),
)
# It computes for a quarter of an hour, so it comes among those that use the brokers, which wait for as long.
BESIDE_BROKERS = "spark"
# Their tests go to any worker, one by one; they come before what is short.
ALONE = ("tests/mqadmin/test_postgres.py",)
# Then by room: journeys wait for processes, crash tests and simulations work for long, all else is short.
ROOMS = ("tests/journeys/", "tests/crash/", "tests/simulation/", "tests/")
# Ends what a worker has started of these for a whole session.
ENDING = pytest.StashKey[dict[Uses, ExitStack]]()


def workers() -> int:
    """Returns how many workers `-n auto` starts: more than cores, since the tests that take minutes wait.

    With three workers, two cores had nothing to do for a fifth of a whole run.
    """
    return (os.cpu_count() or 1) + 2


def scope_of(nodeid: str) -> str:
    """Returns what must run in one worker together with the test: the name of its group, its file, or it alone."""
    file = nodeid.partition("::")[0]
    if file in ALONE:
        return nodeid
    for name, beginnings in TOGETHER:
        if file.startswith(beginnings):
            return name
    return file


def uses(items: Iterable[pytest.Item]) -> dict[str, Uses]:
    """Returns for each scope the first of what its tests may use, or run beside."""
    found: dict[str, Uses] = {}
    for item in items:
        scope = scope_of(item.nodeid)
        found[scope] = min(found.get(scope, Uses.NEITHER), _uses(item))
    return {scope: Uses.BROKERS if scope == BESIDE_BROKERS else kind for scope, kind in found.items()}


def _uses(item: pytest.Item) -> Uses:
    fixtures = getattr(item, "fixturenames", ())
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    if item.nodeid.startswith(ROOMS[0]):
        if any(one in NAMED for one in parameters if isinstance(one, str)):
            return Uses.BROKERS
        for kind, names in STARTED_BY.items():
            if not names.isdisjoint(fixtures):
                return kind
    return Uses.CLIENTS if item.get_closest_marker("java") is not None else Uses.NEITHER


def sort_key(scope: str, kind: Uses) -> tuple[int, int]:
    """Returns what tests are sorted by, by their scope and what it uses: the smaller, the earlier they run."""
    groups = [name for name, _ in TOGETHER]
    if scope in groups:
        return kind, groups.index(scope)
    if scope.startswith(ALONE):
        return kind, len(groups)
    return kind, len(groups) + 1 + next(number for number, room in enumerate(ROOMS) if scope.startswith(room))


class FilesTogether(LoadScopeScheduling):
    """Distributes files, and groups of files, in the order of the collection, which the workers sort by `sort_key`."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
