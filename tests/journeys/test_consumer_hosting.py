"""Consumer instances hosted by real Celery workers over a real Redis: started, scaled, killed, stopped.

One stage for all: the example shop's two groups with two instances each, on two loops workers of four slots.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from remoting.wire.bodies.watch import GroupState
from tests.support.celery_worker import CeleryWorker
from tests.support.children import Child, is_alive
from tests.support.hosting_stage import HostingStage
from tests.support.install import ROOT
from tests.support.our_broker import OurBroker
from tests.support.redis_server import SOCKET_NAME, RedisServer
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis]

GROUPS = ("billing", "mailing")
QUEUES = {0, 1, 2, 3}


class Stage(HostingStage):
    """An install with the example shop."""

    def __init__(self, folder: Path, redis: RedisServer, broker: OurBroker) -> None:
        super().__init__(folder, redis, broker, "examples.shop")
        # Members that no worker hosts.
        self.guests: set[str] = set()

    def group(self, name: str) -> GroupState | None:
        """Returns None until the first heartbeat of a member, which follows its start."""
        return self.probe.group(name)

    def is_covered(self, group: str) -> bool:
        """Every queue of the topic was last pulled by a member that is online."""
        state = self.group(group)
        if state is None:
            return False
        members = {member.client_id for member in state.members}
        owners = {item.queue_id: item.client_id for item in state.assignments if item.topic == "orders"}
        return set(owners) == QUEUES and set(owners.values()) <= members

    def is_settled(self) -> bool:
        """Two instances of each group run, and their members share the queues."""
        return all(
            len(self.running(group)) == 2
            and set(self.running(group)) == self.members(group) - self.guests
            and self.is_covered(group)
            for group in GROUPS
        )


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    # Unix socket paths are short.
    folder = tmp_path_factory.mktemp("host")
    with RedisServer(folder) as redis, OurBroker(folder / "store", patient=True) as broker:
        made = Stage(folder, redis, broker)
        with made.supervised():
            made.manage("shop_traffic", "--count", "8", "--rate", "100")
            yield made


@pytest.fixture
def workers(stage: Stage) -> Iterator[dict[str, CeleryWorker]]:
    with stage.worker("loops-1", "loops", 4) as one, stage.worker("loops-2", "loops", 4) as two:
        wait_until(stage.is_settled, what="two instances of each group")
        wait_until(lambda: [len(ids) for ids in stage.hosted_by().values()] == [2, 2], what="both workers host")
        yield {"loops-1": one, "loops-2": two}


@pytest.fixture
def guests(stage: Stage, workers: dict[str, CeleryWorker]) -> Iterator[None]:
    """One more member of each group, which no worker hosts and no kill of a worker reaches."""
    command = [sys.executable, "manage.py", "runconsumer"]
    children = {
        group: Child([*command, group], stage.folder / f"{group}.log", cwd=ROOT, env=stage.env) for group in GROUPS
    }

    def joined() -> set[str]:
        marks = [f"@{child.pid}#" for child in children.values()]
        return {member for group in GROUPS for member in stage.members(group) if any(mark in member for mark in marks)}

    try:
        wait_until(lambda: len(joined()) == len(GROUPS), what="the guests")
        stage.guests = joined()
        wait_until(stage.is_settled, what="hosted instances and guests share the queues")
        yield
    finally:
        stage.guests = set()
        for child in children.values():
            child.stop()


@pytest.mark.usefixtures("guests")
def test_a_killed_workers_queues_are_taken_over_and_its_instances_come_back(
    stage: Stage, workers: dict[str, CeleryWorker]
) -> None:
    victim, lost = stage.hosted_by().popitem()
    children = psutil.Process(workers[victim].pid).children()
    workers[victim].kill_main()

    def is_taken_over() -> bool:
        return all(not stage.members(group) & lost and stage.is_covered(group) for group in GROUPS)

    wait_until(is_taken_over, what="the queues of the lost with the others")
    wait_until(lambda: not any(map(is_alive, children)), what="the end of the worker's children")
    wait_until(stage.is_settled, what="the wanted number again")
    # Of a process of this machine supervision knows at once; of others by 30 s of silence.
    reasons = stage.rows("SELECT DISTINCT end_reason FROM mq_consumer_instancelease WHERE state = 'ended'")
    assert ("its process is gone",) in reasons


def test_a_killed_workers_instances_come_back_on_the_same_worker_when_no_other_has_slots(stage: Stage) -> None:
    """As `up` restarts a worker that died."""
    with stage.worker("loops-1", "loops", 4) as only:
        wait_until(stage.is_settled, what="two instances of each group")
        only.kill_main()
        with stage.worker("loops-1", "loops", 4):
            wait_until(stage.is_settled, what="the wanted number again")


def test_scaling_a_group_is_a_number_and_a_stop_commits(stage: Stage, workers: dict[str, CeleryWorker]) -> None:
    stage.want("billing", 4)
    wait_until(lambda: len(stage.running("billing")) == 4 and len(stage.members("billing")) == 4, what="four instances")
    stage.want("billing", 1)
    wait_until(lambda: len(stage.running("billing")) == 1 and len(stage.members("billing")) == 1, what="one instance")
    wait_until(lambda: stage.is_covered("billing"))
    reasons = stage.rows("SELECT end_reason FROM mq_consumer_instancelease WHERE is_failure")
    assert reasons == []
    stage.want("billing", 2)
    wait_until(stage.is_settled)


def test_a_draining_worker_hands_its_instances_over_before_they_stop(
    stage: Stage, workers: dict[str, CeleryWorker]
) -> None:
    fewest: dict[str, int] = dict.fromkeys(GROUPS, 2)

    def is_drained() -> bool:
        for group in GROUPS:
            fewest[group] = min(fewest[group], len(stage.running(group)))
        return set(stage.hosted_by()) == {"loops-2"} and stage.is_settled()

    stage.rows("UPDATE mq_consumer_loopsworker SET is_draining = 1 WHERE node LIKE 'loops-1@%'")
    wait_until(is_drained, what="all instances on the other worker")
    assert fewest == dict.fromkeys(GROUPS, 2)
    stage.rows("UPDATE mq_consumer_loopsworker SET is_draining = 0")
    wait_until(lambda: len(stage.hosted_by()) == 2 and stage.is_settled(), what="instances on both workers again")


def test_a_stopped_group_has_no_member_until_it_is_started_again(
    stage: Stage, workers: dict[str, CeleryWorker]
) -> None:
    stage.rows("UPDATE mq_consumer_hostedgroup SET is_stopped = 1 WHERE \"group\" = 'billing'")
    wait_until(lambda: not stage.running("billing") and not stage.members("billing"), what="no member")
    assert len(stage.running("mailing")) == 2
    stage.rows("UPDATE mq_consumer_hostedgroup SET is_stopped = 0")
    wait_until(stage.is_settled, what="two instances of each group")


def test_instances_go_on_consuming_while_redis_is_away_and_end_with_their_worker(stage: Stage) -> None:
    worker = stage.worker("loops-1", "loops", 4)
    # Others of its name have written there before.
    begun = len(worker.output())
    with worker:
        wait_until(stage.is_settled, what="two instances of each group")
        before = {group: stage.members(group) for group in GROUPS}
        stage_redis = psutil.Process(_redis_pid(stage))
        stage_redis.send_signal(signal.SIGSTOP)
        try:
            stage.manage("shop_traffic", "--count", "8", "--rate", "100")
            wait_until(lambda: _lag(stage, "mailing") == 0, what="the new orders consumed")

            def are_there() -> bool:
                now = {group: stage.members(group) for group in GROUPS}
                assert all(now[group] <= before[group] for group in GROUPS), "somebody else joined"
                return now == before

            wait_until(are_there, what="the same members")
        finally:
            stage_redis.send_signal(signal.SIGCONT)
        assert worker.stop() == 0
    wait_until(lambda: not stage.members("mailing") and not stage.members("billing"))
    assert "Traceback" not in worker.output()[begun:]


def test_sigterm_to_a_workers_whole_process_group_ends_its_instances_in_order(stage: Stage) -> None:
    """As systemd and containers send it: offsets are committed, members leave, and no instance counts as failed."""
    with stage.worker("loops-1", "loops", 4) as worker:
        wait_until(stage.is_settled, what="two instances of each group")
        ours = {client_id for group in GROUPS for client_id in stage.running(group)}
        os.killpg(worker.pid, signal.SIGTERM)
        wait_until(lambda: not any(stage.members(group) for group in GROUPS), what="members that left")
        assert worker.ended() == 0
    marks = ",".join("?" * len(ours))
    query = f"SELECT end_reason, is_failure, state FROM mq_consumer_instancelease WHERE client_id IN ({marks})"  # noqa: S608
    wait_until(lambda: {state for *_, state in stage.rows(query, *ours)} == {"ended"}, what="the ends of all leases")
    rows = stage.rows(query, *ours)
    assert {bool(is_failure) for _, is_failure, _ in rows} == {False}
    assert {reason for reason, *_ in rows} <= {"its worker stopped", "its process was terminated"}


def _redis_pid(stage: Stage) -> int:
    for process in psutil.Process().children():
        if SOCKET_NAME in " ".join(process.cmdline()):
            return process.pid
    raise AssertionError("no Redis runs")


def _lag(stage: Stage, group: str) -> int:
    body = stage.probe.watch()
    committed = {
        item.queue_id: item.committed_offset
        for item in body.committed
        if item.group == group and item.topic == "orders"
    }
    return sum(queue.max_offset - committed.get(queue.queue_id, 0) for queue in body.queues if queue.topic == "orders")
