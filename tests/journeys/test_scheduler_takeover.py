"""Delayed messages delivered by Celery workers under the broker's lease, and what happens when one is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.journeys.scheduler_cluster import Cluster, pid_of, running_cluster
from tests.support.celery_worker import CeleryWorker
from tests.support.children import is_alive
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis]

LEVEL_1_MS = 1_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path) as cluster:
        yield cluster


def test_delayed_message_waits_while_nobody_drives_and_comes_when_a_worker_does(cluster: Cluster) -> None:
    cluster.send_delayed(b"one")
    time.sleep(LEVEL_1_MS / 1000 + 0.2)
    assert cluster.delivered() == []

    with cluster.worker("only"):
        (message,) = cluster.wait_for(1)
        assert message.body == b"one"


def test_delayed_messages_come_at_their_time_and_never_early(cluster: Cluster) -> None:
    with cluster.worker("only"):
        wait_until(lambda: cluster.driver)
        sent = {}
        for number in range(8):
            sent[b"%d" % number] = cluster.send_delayed(b"%d" % number)
            time.sleep(0.1)
        messages = cluster.wait_for(8)
    # How late they are on a machine that does nothing else, the benchmark measures.
    for message in messages:
        assert message.store_timestamp_ms - int(sent[message.body] * 1000) >= LEVEL_1_MS


def test_another_worker_takes_over_when_the_driving_one_is_killed(cluster: Cluster) -> None:
    with cluster.worker("first") as first, cluster.worker("second") as second:
        driver = wait_until(lambda: cluster.driver)
        driving = first if pid_of(driver) in children_of(first) else second
        cluster.send_delayed(b"one")
        driving.kill_main()

        wait_until(lambda: cluster.driver not in ("", driver), what="another driver")
        cluster.wait_for(1)
        time.sleep(0.5)
        assert [message.body for message in cluster.delivered()] == [b"one"]


def test_a_worker_drives_again_when_its_child_is_killed(cluster: Cluster) -> None:
    with cluster.worker("only"):
        driver = wait_until(lambda: cluster.driver)
        os.kill(pid_of(driver), signal.SIGKILL)

        wait_until(lambda: cluster.driver not in ("", driver), what="a new driver")


def test_a_worker_drives_on_when_the_broker_was_killed_and_nothing_comes_twice(cluster: Cluster) -> None:
    with cluster.worker("only"):
        wait_until(lambda: cluster.driver)
        cluster.send_delayed(b"one")
        cluster.wait_for(1)
        cluster.send_delayed(b"two")
        cluster.broker.kill()
        cluster.broker.start()

        wait_until(lambda: cluster.driver)
        cluster.wait_for(2)
        time.sleep(0.5)
        assert [message.body for message in cluster.delivered()] == [b"one", b"two"]


def test_a_worker_goes_on_driving_while_redis_is_away(cluster: Cluster) -> None:
    with cluster.worker("only"):
        driver = wait_until(lambda: cluster.driver)
        cluster.redis.stop()
        cluster.send_delayed(b"one")
        cluster.wait_for(1)
        cluster.redis.start()

        # A machine that stands still for a moment loses it the lease; nobody else is there to take it.
        wait_until(lambda: cluster.driver == driver, what="the same driver")


def test_a_worker_stops_by_itself_while_it_drives(cluster: Cluster) -> None:
    """A worker that does not stop is killed, and its code is not 0."""
    with cluster.worker("only") as worker:
        wait_until(lambda: cluster.driver)
        code = worker.stop()

    assert code == 0
    assert cluster.driver == ""


def test_a_killed_worker_leaves_no_child_that_drives(cluster: Cluster) -> None:
    with cluster.worker("only") as worker:
        wait_until(lambda: cluster.driver)
        children = psutil.Process(worker.pid).children(recursive=True)
        worker.kill_main()

        gone, alive = psutil.wait_procs(children, timeout=60)
        assert [child for child in alive if is_alive(child)] == []
        assert gone or alive
    wait_until(lambda: cluster.driver == "")


def children_of(worker: CeleryWorker) -> set[int]:
    return {child.pid for child in psutil.Process(worker.pid).children(recursive=True)}
