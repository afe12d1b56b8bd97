"""Hosting as deploys, operators and several clusters meet it: real Celery workers over a real Redis, two brokers.

One stage for all: an app with a plain and an async listener on the first cluster, and one on the second.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.support.broker_probe import BrokerProbe
from tests.support.celery_worker import CeleryWorker
from tests.support.gaps import CommittedOffsets
from tests.support.hosting_stage import RecordingStage
from tests.support.our_broker import OurBroker
from tests.support.redis_server import RedisServer
from tests.support.traffic import Traffic
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis]

TOPIC = "records"
GROUPS = ("plain", "async")
# Without handing over, a queue stands still until supervision and the next rebalance come round.
GAP_S_MAX = 10.0
# What a process of a prefork pool has for itself, beside what it shares with the others; without sharing it is 60 MiB.
INSTANCE_BYTES_MAX = 40 * 2**20


class Stage(RecordingStage):
    second: BrokerProbe


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    # Unix socket paths are short.
    folder = tmp_path_factory.mktemp("dep")
    with (
        RedisServer(folder) as redis,
        OurBroker(folder / "one", patient=True) as broker,
        OurBroker(folder / "two", patient=True) as second,
    ):
        made = Stage(folder, redis, broker, {"MQADMIN_CLUSTERS": f"second={second.namesrv}"})
        made.second = BrokerProbe(second.broker)
        with made.supervised():
            yield made


def sigterm_to_main(worker: CeleryWorker) -> None:
    os.kill(worker.pid, signal.SIGTERM)


def sigterm_to_group(worker: CeleryWorker) -> None:
    """As systemd and containers send it."""
    os.killpg(worker.pid, signal.SIGTERM)


@pytest.mark.parametrize(("pool", "sigterm"), [("prefork", sigterm_to_group), ("threads", sigterm_to_main)])
def test_no_queue_pauses_while_a_new_worker_takes_over_from_the_old_one(
    stage: Stage, pool: str, sigterm: Callable[[CeleryWorker], None]
) -> None:
    with Traffic(stage.broker.namesrv, TOPIC) as traffic, stage.worker(f"old-{pool}", "loops", 4, "-P", pool) as old:
        wait_until(lambda: all(len(stage.running(group)) == 1 for group in GROUPS), what="an instance of each group")
        wait_until(lambda: len(stage.probe.committed("plain", TOPIC)) == 4, what="commits of all queues")
        with (
            stage.worker(f"new-{pool}", "loops", 4, "-P", pool),
            CommittedOffsets(stage.probe, "plain", TOPIC) as plain,
            CommittedOffsets(stage.probe, "async", TOPIC) as not_plain,
        ):
            sent_before = len(traffic.sent)
            wait_until(
                lambda: len(traffic.sent) > sent_before + 150, what="supervision that is not about to run anyhow"
            )
            sigterm(old)
            wait_until(lambda: set(stage.hosted_by()) == {f"new-{pool}"}, what="instances on the new worker alone")
            wait_until(lambda: all(len(stage.members(group)) == 1 for group in GROUPS), what="one member of each group")
            assert old.ended() == 0
            traffic.stop()
            wait_until(lambda: stage.is_consumed(GROUPS, traffic.sent), what="all consumed")
    for offsets in (plain, not_plain):
        assert offsets.longest_gap_s < GAP_S_MAX
        assert offsets.backwards == []


def sigquit(worker: CeleryWorker) -> None:
    os.kill(worker.pid, signal.SIGQUIT)


def ctrl_c_twice(worker: CeleryWorker) -> None:
    """As a terminal sends it: to all processes."""
    group = worker.pid
    os.killpg(group, signal.SIGINT)
    wait_until(lambda: "Hitting Ctrl+C again" in worker.output(), what="Celery's answer to the first")
    if worker.is_running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGINT)


@pytest.mark.parametrize(
    ("pool", "end"), [("prefork", sigquit), ("threads", sigquit), ("prefork", ctrl_c_twice), ("threads", ctrl_c_twice)]
)
def test_a_cold_shutdown_commits_and_leaves_the_group_without_handing_over(
    stage: Stage, pool: str, end: Callable[[CeleryWorker], None]
) -> None:
    name = f"cold-{pool}-{end.__name__}"
    with Traffic(stage.broker.namesrv, TOPIC) as traffic, stage.worker(name, "loops", 4, "-P", pool) as worker:
        wait_until(lambda: all(len(stage.running(group)) == 1 for group in GROUPS), what="an instance of each group")
        traffic.stop()
        wait_until(lambda: stage.is_consumed(GROUPS, traffic.sent), what="all consumed")
        end(worker)
        wait_until(lambda: not any(stage.members(group) for group in GROUPS), what="no member")
        wait_until(lambda: not worker.is_running, what="the worker's end")
        ends = stage.probe.max_offsets(TOPIC)
        assert [stage.probe.committed(group, TOPIC) for group in GROUPS] == [ends, ends]


def test_the_same_group_on_two_clusters_has_its_own_instances_and_messages(stage: Stage) -> None:
    bodies = [f"there-{number}" for number in range(20)]
    for body in bodies:
        stage.second.send(TOPIC, body.encode())
    with stage.worker("both", "loops", 6) as worker:
        # Its threads take messages side by side.
        received = lambda: sorted(stage.recorded("plain@second"))  # noqa: E731
        wait_until(lambda: received() == sorted(bodies), what="the second cluster's messages")
        # The first cluster's instance may start after the second's has received all.
        wait_until(
            lambda: len(stage.running("plain", "second")) == len(stage.running("plain")) == 1,
            what="one instance on each cluster",
        )
        stage.rows("UPDATE mq_consumer_hostedgroup SET wanted_instances = 2 WHERE cluster = 'second'")
        wait_until(lambda: len(stage.second.members("plain")) == 2, what="two members there")
        wait_until(lambda: stage.members("plain"), what="the member here")
        assert len(stage.members("plain")) == 1
        assert not set(bodies) & set(stage.recorded("plain"))
        own_bytes = [child.memory_full_info().uss for child in psutil.Process(worker.pid).children()]
        assert max(own_bytes) < INSTANCE_BYTES_MAX
        stage.rows("UPDATE mq_consumer_hostedgroup SET wanted_instances = 1 WHERE cluster = 'second'")


def test_a_message_whose_task_died_with_its_celery_worker_is_retried(stage: Stage) -> None:
    with stage.worker("tasks-loops", "loops", 4), stage.worker("dying", "work", 1) as dying:
        stage.probe.send("work", b"fine")
        wait_until(lambda: stage.recorded("tasks") == ["fine"], what="the first message's task")
        wait_until(lambda: stage.probe.committed("tasks", "work") == {0: 1}, what="its commit, once the task has ended")
        stage.probe.send("work", b"kills")
        wait_until(lambda: not dying.is_running, what="the worker's end")
        with stage.worker("living", "work", 1):
            wait_until(lambda: stage.recorded("tasks") == ["fine", "kills"], what="the message's second task")
            wait_until(lambda: stage.probe.committed("tasks", "%RETRY%tasks") == {0: 1}, what="the retry's commit")
