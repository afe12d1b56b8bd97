"""The scheduler's process stopped (SIGSTOP): exactly what it drives stops; and when it wakes, it is too late."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.journeys.scheduler_cluster import TOPIC, Cluster, TransactionProducer, pid_of, processes_of, running_cluster
from tests.support.asking import ask
from tests.support.celery_worker import CeleryWorker
from tests.support.old_stores import PER_SEGMENT, old_store, segment_names
from tests.support.reading import all_messages
from tests.support.stores import ManualClock
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis]

LEVEL_1_S = 1.0
SEGMENTS = 4
NEVER_HOURS = "876000"
ALL_HOURS = ";".join(f"{hour:02d}" for hour in range(24))
# On its way for as long as a busy machine needs, and due while the process is stopped.
TIMER_MS = 5000
# Longer than the lease: who is stopped has lost it.
STOPPED_S = 7.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Its store has four segments that are years old, and keeps them until it is told otherwise."""
    old_store(tmp_path / "store", ManualClock(), SEGMENTS).close()
    with running_cluster(tmp_path, f"--delete-when={ALL_HOURS}", "--transaction-timeout=1") as cluster:
        cluster.change_setting("fileReservedTime", NEVER_HOURS)
        yield cluster


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[TransactionProducer]:
    with closing(TransactionProducer(cluster.broker.broker)) as producer:
        yield producer


@contextmanager
def stopped(worker: CeleryWorker) -> Iterator[None]:
    processes = processes_of(worker)
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            if process.is_running():
                process.send_signal(signal.SIGCONT)


def test_with_the_schedulers_process_stopped_exactly_what_it_drives_stops(
    cluster: Cluster, producer: TransactionProducer
) -> None:
    store = cluster.folder / "store"
    old = segment_names(store)[:SEGMENTS]
    with cluster.worker("only") as worker:
        wait_until(lambda: cluster.driver)
        with stopped(worker):
            now_ms = time.time_ns() // 1_000_000
            cluster.send(b"by level", DELAY="1")
            cluster.send(b"by time", TIMER_DELIVER_MS=str(now_ms + TIMER_MS))
            cluster.send(b"half", TRAN_MSG="true", PGROUP="p", UNIQ_KEY="7F00000100002A9F000000000000AB01")
            cluster.change_setting("fileReservedTime", "72")
            deadline_s = time.monotonic() + STOPPED_S
            count = 0
            while time.monotonic() < deadline_s:
                count += 1
                everything_else_goes_on(cluster, count)
            assert set(cluster.bodies()) == {b"at once"}
            assert producer.asked_count == 0
            assert set(old) <= set(segment_names(store))
            assert cluster.driver == ""
            late = {kind.kind: kind for kind in cluster.state.kinds}
            assert all(0 < late[kind].next_due_ms < time.time_ns() // 1_000_000 for kind in late)
            assert set(late) == {"delay", "timer", "transaction", "retention"}

        late: set[str] = set()

        def are_gone() -> bool:
            # Each is due a moment after the one before: the last may go to the millisecond of its time.
            late.update(late_kinds(cluster))
            return not set(old[:-1]) & set(segment_names(store))

        # What was sent meanwhile lies in the last of the old ones, and in new ones.
        wait_until(are_gone, what="old segments gone")
        wait_until(lambda: {b"by level", b"by time"} <= set(all_bodies(cluster)), what="what was due")
        wait_until(lambda: producer.asked_count > 0, what="a question about the transaction")
        assert sorted(all_bodies(cluster)).count(b"by level") == 1
        assert late | late_kinds(cluster) >= {"delay", "timer", "retention"}


def late_kinds(cluster: Cluster) -> set[str]:
    """The kinds whose last step came late."""
    return {kind.kind for kind in cluster.state.kinds if kind.late_ms > 0}


def everything_else_goes_on(cluster: Cluster, count: int) -> None:
    """A send, a pull, a commit of an offset, a lock: each answered as ever."""
    cluster.send(b"at once")
    assert len(cluster.bodies()) == min(count, 32)
    address = cluster.broker.broker
    commit = {"consumerGroup": "g", "topic": "late", "queueId": "0", "commitOffset": str(count)}
    ask(address, Command(code=RequestCode.UPDATE_CONSUMER_OFFSET, ext_fields=commit))
    answer = ask(address, Command(code=RequestCode.QUERY_CONSUMER_OFFSET, ext_fields=commit))
    assert answer.ext_fields["offset"] == str(count)
    queue = {"topic": "late", "brokerName": "broker-a", "queueId": 0}
    body = msgspec.json.encode({"consumerGroup": "g", "clientId": "c", "mqSet": [queue]})
    locked = ask(address, Command(code=RequestCode.LOCK_BATCH_MQ, body=body))
    assert b'"late"' in bytes(locked.body)


def all_bodies(cluster: Cluster) -> list[bytes]:
    return [message.body for message in all_messages(cluster.broker.broker, TOPIC)]


def test_a_driver_that_wakes_after_another_took_over_has_its_steps_refused(cluster: Cluster) -> None:
    with cluster.worker("first") as first, cluster.worker("second") as second:
        before = wait_until(lambda: state if (state := cluster.state).driver else None)
        driving = first if pid_of(before.driver) in {process.pid for process in processes_of(first)} else second
        with stopped(driving):
            wait_until(lambda: cluster.driver not in ("", before.driver), what="another driver")
            cluster.send_delayed(b"one")
            late = cluster.step(before.epoch, "delay", "1")
            assert late.code == ResponseCode.SCHEDULER_EPOCH_STALE
            assert cluster.state.epoch > before.epoch
            cluster.wait_for(1)
        after = cluster.state
        cluster.send_delayed(b"two")
        cluster.wait_for(2)
        time.sleep(0.5)

        assert cluster.bodies() == [b"one", b"two"]
        # On a machine that stands still the lease may pass on again, and then with another epoch.
        now = cluster.state
        assert now.epoch > after.epoch or now.driver in ("", after.driver)
        assert all(psutil.pid_exists(process.pid) for process in processes_of(driving)), "it stands by"


def test_what_the_killed_drivers_kinds_had_due_is_done_by_the_next(
    cluster: Cluster, producer: TransactionProducer
) -> None:
    with cluster.worker("first") as first, cluster.worker("second") as second:
        driver = wait_until(lambda: cluster.driver)
        driving = first if pid_of(driver) in {process.pid for process in processes_of(first)} else second
        cluster.send(b"by level", DELAY="1")
        cluster.send(b"by time", TIMER_DELIVER_MS=str(time.time_ns() // 1_000_000 + 1000))
        cluster.send(b"half", TRAN_MSG="true", PGROUP="p", UNIQ_KEY="7F00000100002A9F000000000000AB02")
        cluster.change_setting("fileReservedTime", "72")
        driving.kill_main()

        wait_until(lambda: cluster.driver not in ("", driver), what="another driver")
        wait_until(lambda: sorted(cluster.bodies()) == [b"by level", b"by time"], what="what was due")
        wait_until(lambda: producer.asked_count > 0, what="a question about the transaction")
        wait_until(lambda: len(segment_names(cluster.folder / "store")) < SEGMENTS, what="old segments gone")


def test_a_consumer_whose_place_was_retained_away_is_told_where_to_go_on(cluster: Cluster) -> None:
    cluster.send(b"the newest", "orders")
    with cluster.worker("only"):
        cluster.change_setting("fileReservedTime", "72")
        wait_until(lambda: len(segment_names(cluster.folder / "store")) == 1, what="old segments gone")

    answer = cluster.pull("orders")
    assert answer.code == ResponseCode.PULL_OFFSET_MOVED
    minimum = (SEGMENTS - 1) * PER_SEGMENT
    assert (answer.ext_fields["nextBeginOffset"], answer.ext_fields["minOffset"]) == (str(minimum), str(minimum))
    assert cluster.pull("orders", minimum).code == ResponseCode.SUCCESS
