"""How a parallel run (`pytest -n`) distributes the tests over its workers.

A worker gets a whole file, so that what a file's tests share is started once; of files whose tests share nothing and
take minutes each, it gets a test. Files that share a cluster of Apache RocketMQ and its clients, or a Spark session, go
to one worker together. Files that mostly wait are distributed first, so that no worker is still waiting when the others
have ended. Before all else come those that use the shared brokers of Apache's, then those that use its clients alone: a
worker ends either with the last test that uses them, since each broker takes a thirtieth of a core while idle. One
worker computes with Spark meanwhile: these tests leave a third of the cores' time unused.

In all of this each worker reads every file, and of quick tests that is half the work. With `--dist each`, as in
`make check`, a worker reads and runs its share of the files alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from enum import IntEnum
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from xdist.remote import Producer
from xdist.scheduler import EachScheduling, LoadScopeScheduling
from xdist.workermanage import WorkerController


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
# Under which a worker is told the number of its share.
SHARE = "share"


def workers(dist: str) -> int:
    """Returns how many workers `-n auto` starts: more than cores, since tests wait.

    In a whole run these are the tests of minutes; with three workers, two cores had nothing to do for a fifth of it.
    """
    return (os.cpu_count() or 1) + (1 if dist == "each" else 2)


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


class Shares:
    """Deals files out to workers as they are found: each to the one that has the fewest bytes so far.

    Every worker finds the same files in the same order, and so knows its own without asking.
    """

    def __init__(self, workers: int, own: int) -> None:
        self._own = own
        self._bytes = [0] * workers
        self._receivers: dict[Path, int] = {}

    def is_own(self, file: Path) -> bool:
        if file not in self._receivers:
            receiver = self._bytes.index(min(self._bytes))
            self._receivers[file] = receiver
            self._bytes[receiver] += file.stat().st_size
        return self._receivers[file] == self._own


def tell_share(node: WorkerController) -> None:
    """Tells a worker that is about to start which share is its own, in a run that has shares."""
    if node.config.option.dist == "each":
        node.workerinput[SHARE] = int(node.workerinput["workerid"].removeprefix("gw"))


def own_share(config: pytest.Config) -> Shares | None:
    """Returns what tells a worker its files; None where it reads them all."""
    told = getattr(config, "workerinput", {})
    return Shares(told["workercount"], told[SHARE]) if SHARE in told else None


def run_and_report(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Runs a test and reports its call, and of its set-up and teardown what did not pass.

    All reports go to the process that prints. Those of which it shows nothing cost the two almost a millisecond a test.
    """
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class EachItsShare(EachScheduling):
    """Has each worker run what it collected, and counts all of that for the percentage."""

    def schedule(self) -> None:
        session = self.config.pluginmanager.getplugin("session")
        session.testscollected = sum(len(collected) for collected in self.node2collection.values())
        super().schedule()
