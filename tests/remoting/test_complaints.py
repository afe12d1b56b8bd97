"""How many lines a misbehaving peer can make the log grow by, and that none is lost without a count."""

from __future__ import annotations

import logging

import pytest

from remoting.complaints import ComplaintLog
from tests.support.logged import lines_of, records_of
from tests.support.manual_clock import ManualClock

LOGGER = "remoting.complaints"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def complaints(clock: ManualClock) -> ComplaintLog:
    return ComplaintLog(clock=lambda: clock() / 1000, entries_max=4)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return lines_of(caplog, LOGGER, logging.WARNING)


def test_the_first_complaint_is_written_at_once_and_its_repetitions_are_not(
    complaints: ComplaintLog, caplog: pytest.LogCaptureFixture
) -> None:
    for port in range(1000):
        complaints.warn("10.0.0.1", "broken frame", "10.0.0.1:%d: frame length %d", port, -1)
    assert warnings(caplog) == ["10.0.0.1:0: frame length -1"]


def test_the_line_after_the_interval_says_how_many_were_left_out(
    complaints: ComplaintLog, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        complaints.warn("10.0.0.1", "broken frame", "bad")
    clock.advance_ms(60_000)
    complaints.warn("10.0.0.1", "broken frame", "bad again, %d %%", 5)
    assert warnings(caplog) == ["bad", "bad again, 5 %; 10.0.0.1, broken frame: 2 more in 60 s were not logged"]


def test_other_hosts_and_other_kinds_have_lines_of_their_own(
    complaints: ComplaintLog, caplog: pytest.LogCaptureFixture
) -> None:
    complaints.warn("10.0.0.1", "broken frame", "first")
    complaints.warn("10.0.0.1", "unknown request code", "second")
    complaints.warn("10.0.0.2", "broken frame", "third")
    assert warnings(caplog) == ["first", "second", "third"]


def test_the_number_is_reported_when_the_peer_has_stopped(
    complaints: ComplaintLog, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        complaints.warn("10.0.0.1", "broken frame", "bad")
    complaints.warn("10.0.0.2", "broken frame", "only once")
    clock.advance_ms(59_000)
    complaints.report_left_out()
    assert len(warnings(caplog)) == 2
    clock.advance_ms(1_000)
    complaints.report_left_out()
    assert warnings(caplog)[2:] == ["10.0.0.1, broken frame: 2 more in 60 s were not logged"]


def test_a_report_counts_as_the_line_of_its_minute(
    complaints: ComplaintLog, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    complaints.warn("10.0.0.1", "broken frame", "bad")
    complaints.warn("10.0.0.1", "broken frame", "bad")
    clock.advance_ms(60_000)
    complaints.report_left_out()
    complaints.warn("10.0.0.1", "broken frame", "bad")
    assert len(warnings(caplog)) == 2
    clock.advance_ms(60_000)
    complaints.report_left_out()
    assert len(warnings(caplog)) == 3


def test_hosts_beyond_the_limit_share_one_line(complaints: ComplaintLog, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1000):
        complaints.warn(f"10.0.{number // 256}.{number % 256}", "broken frame", "bad %d", number)
    assert warnings(caplog) == ["bad 0", "bad 1", "bad 2", "bad 3", "bad 4"]


def test_hosts_beyond_the_limit_find_room_when_the_others_have_stopped(
    complaints: ComplaintLog, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(4):
        complaints.warn(f"10.0.0.{number}", "broken frame", "bad")
    clock.advance_ms(60_000)
    complaints.warn("10.0.0.9", "broken frame", "a newcomer")
    complaints.warn("10.0.0.9", "broken frame", "a newcomer")
    assert warnings(caplog)[4:] == ["a newcomer"]


def test_what_is_no_fault_is_counted_as_well_and_its_count_is_no_warning(
    complaints: ComplaintLog, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(3):
        complaints.info("10.0.0.1", "idle", "nothing came")
    clock.advance_ms(60_000)
    complaints.report_left_out()
    assert [(record.levelname, record.getMessage()) for record in records_of(caplog, LOGGER)] == [
        ("INFO", "nothing came"),
        ("INFO", "10.0.0.1, idle: 2 more in 60 s were not logged"),
    ]


def test_what_is_left_out_can_be_seen_at_debug_level(
    complaints: ComplaintLog, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="remoting.complaints"):
        complaints.warn("10.0.0.1", "broken frame", "first")
        complaints.warn("10.0.0.1", "broken frame", "second")
    assert [(record.levelname, record.getMessage()) for record in records_of(caplog, LOGGER)] == [
        ("WARNING", "first"),
        ("DEBUG", "second"),
    ]


def test_a_complaint_that_was_resolved_is_written_at_once_when_it_comes_again(
    complaints: ComplaintLog, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        complaints.warn("broker-a", "unreachable", "away")
    complaints.resolved("broker-a", "unreachable")
    complaints.warn("broker-a", "unreachable", "away again")
    assert warnings(caplog) == ["away", "away again"]


def test_the_traceback_of_the_same_mistake_is_written_once_in_the_interval(
    complaints: ComplaintLog, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        if number == 2:
            clock.advance_ms(60_000)
        try:
            raise ValueError("ours")
        except ValueError:
            complaints.exception("SEND_MESSAGE", "failed request", "request %d failed", number)
    written = records_of(caplog, LOGGER, logging.ERROR)
    assert [record.getMessage() for record in written] == [
        "request 0 failed",
        "request 2 failed; SEND_MESSAGE, failed request: 1 more in 60 s were not logged",
    ]
    assert all(record.exc_info for record in written)
