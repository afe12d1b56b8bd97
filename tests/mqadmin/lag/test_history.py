from __future__ import annotations

from mqadmin.lag.history import BUCKET_S, SAMPLES_MAX, WINDOW_S, LagSample, appended, lag_at, unpack, window

START_S = 1_700_000_010  # a multiple of BUCKET_S


def history(*samples: tuple[int, int | None]) -> bytes:
    packed = b""
    for at_s, lag in samples:
        packed = appended(packed, LagSample(START_S + at_s, lag))
    return packed


def test_start_is_the_beginning_of_a_bucket() -> None:
    assert START_S % BUCKET_S == 0


def test_unchanged_lag_costs_no_sample() -> None:
    assert unpack(history((0, 5), (30, 5), (60, 5))) == [LagSample(START_S, 5)]


def test_latest_value_of_a_half_minute_wins() -> None:
    assert unpack(history((0, 5), (10, 7), (20, 9))) == [LagSample(START_S + 20, 9)]


def test_unknown_is_kept_apart_from_zero() -> None:
    packed = history((0, 0), (30, None), (60, 0))
    assert [sample.lag for sample in unpack(packed)] == [0, None, 0]


def test_lag_at_a_moment_is_that_of_the_last_sample_before_it() -> None:
    packed = history((0, 5), (60, 9))
    assert lag_at(packed, START_S - 1) is None
    assert lag_at(packed, START_S + 59) == 5
    assert lag_at(packed, START_S + 60) == 9


def test_what_held_when_the_window_began_is_kept_and_moved_to_its_edge() -> None:
    packed = history((0, 5), (30, 6), (WINDOW_S + 60, 7))
    assert [sample.lag for sample in unpack(packed)] == [6, 7]
    now_s = START_S + WINDOW_S + 100
    assert window(packed, now_s) == [LagSample(now_s - WINDOW_S, 6), LagSample(START_S + WINDOW_S + 60, 7)]


def test_history_is_bounded_however_often_it_changes() -> None:
    packed = history(*((step * BUCKET_S, step) for step in range(3 * SAMPLES_MAX)))
    assert len(unpack(packed)) <= SAMPLES_MAX
