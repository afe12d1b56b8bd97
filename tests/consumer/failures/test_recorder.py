from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pytest
from django.db import OperationalError

from consumer.engine.failures import Failure
from consumer.failures.models import MessageFailure
from consumer.failures.recorder import WAITING_MAX, FailureRecorder, prune, write_failures
from remoting.wire.failures import FailureReason
from tests.support.logged import lines_of
from tests.support.waiting import wait_until


def failure(message_id: str = "A", failed_ms: int = 1000, text: str = "no", attempt: int = 1) -> Failure:
    return Failure("orders", message_id, failed_ms, FailureReason("ValueError", text, "shop.bill", "host@1#a", attempt))


@pytest.mark.django_db
def test_a_message_has_one_row_with_its_latest_failure() -> None:
    write_failures("", "billing", [failure("A"), failure("B"), failure("A", 2000, "still no", 2)])
    write_failures("", "billing", [failure("A", 3000, "never", 3)])
    write_failures("payments", "billing", [failure("A")])
    rows = MessageFailure.objects.filter(cluster="").order_by("message_id")
    assert [(row.message_id, row.text, row.attempt) for row in rows] == [("A", "never", 3), ("B", "no", 1)]
    assert rows[0].failed_at == datetime.fromtimestamp(3, UTC)
    assert (rows[0].exception, rows[0].listener, rows[0].member) == ("ValueError", "shop.bill", "host@1#a")
    assert MessageFailure.objects.count() == 3


@pytest.mark.django_db
def test_the_table_keeps_the_newest() -> None:
    write_failures("", "billing", [failure(str(each), each * 1000) for each in range(10)])
    prune(keep=4)
    assert set(MessageFailure.objects.values_list("message_id", flat=True)) == {"6", "7", "8", "9"}
    prune(keep=4)
    assert MessageFailure.objects.count() == 4


class Written:
    """Stands for the database: away at first, or slow."""

    def __init__(self, failures_before: int = 0) -> None:
        self.batches: list[list[str]] = []
        self.deleted_old = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.began = threading.Event()
        self._failures_left = failures_before

    def __call__(self, cluster: str, group: str, failures: Sequence[Failure]) -> None:
        self.began.set()
        self.may_go_on.wait(60)
        if self._failures_left:
            self._failures_left -= 1
            raise OperationalError("the database is away")
        self.batches.append([each.message_id for each in failures])

    def delete_old(self) -> None:
        self.deleted_old += 1


def recorder_of(group: str, written: Written) -> FailureRecorder:
    return FailureRecorder("", group, written, written.delete_old, interval_s=0.01, idle_s=0.05)


def threads_that_write() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("failures of ")]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Waits for the threads that write, which would log into other tests."""
    yield
    wait_until(lambda: not threads_that_write())


def test_failures_are_written_together_and_a_thread_without_work_ends() -> None:
    written = Written()
    written.may_go_on.clear()
    recorder = recorder_of("recorded", written)
    recorder(failure("A"))
    wait_until(written.began.is_set)
    for name in "BCD":
        recorder(failure(name))
    written.may_go_on.set()
    wait_until(lambda: len(written.batches) == 2)
    assert written.batches == [["A"], ["B", "C", "D"]]
    wait_until(lambda: "failures of recorded" not in threads_that_write())
    recorder(failure("E"))
    wait_until(lambda: written.batches[-1] == ["E"])


def test_a_database_that_is_away_costs_failures_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    written = Written(failures_before=2)
    recorder = recorder_of("away", written)
    recorder(failure("A"))
    wait_until(lambda: "the database is away" in caplog.text)
    written.began.clear()
    recorder(failure("B"))
    wait_until(written.began.is_set)
    recorder(failure("C"))
    wait_until(lambda: written.batches)
    assert written.batches[-1][-1] == "C"
    assert sum("group away" in line for line in lines_of(caplog, "consumer.failures")) == 1


def test_what_waits_is_bounded_and_the_oldest_goes() -> None:
    written = Written()
    written.may_go_on.clear()
    recorder = recorder_of("much", written)
    recorder(failure("first"))
    wait_until(written.began.is_set)
    for number in range(WAITING_MAX + 5):
        recorder(failure(str(number)))
    written.may_go_on.set()
    wait_until(lambda: len(written.batches) == 2)
    assert (len(written.batches[1]), written.batches[1][0]) == (WAITING_MAX, "5")
    wait_until(lambda: written.deleted_old == 1)
