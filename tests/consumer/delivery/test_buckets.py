"""Each duration has one bucket, whose middle is near it."""

from __future__ import annotations

import pytest

from consumer.delivery.buckets import BUCKET_COUNT, DURATION_MS_MAX, bounds_ms, bucket_of, percentiles_s


@pytest.mark.parametrize(
    ("duration_ms", "bucket"),
    [(-5, 0), (0, 0), (15, 15), (16, 16), (17, 16), (18, 17), (1000, 63), (DURATION_MS_MAX * 9, BUCKET_COUNT - 1)],
)
def test_a_duration_has_its_bucket(duration_ms: int, bucket: int) -> None:
    assert bucket_of(duration_ms) == bucket


def test_buckets_follow_each_other_without_a_gap_and_are_narrow() -> None:
    bounds = [bounds_ms(bucket) for bucket in range(BUCKET_COUNT)]
    assert [first for first, _beyond in bounds[1:]] == [beyond for _first, beyond in bounds[:-1]]
    assert (bounds[0][0], bounds[-1][1]) == (0, DURATION_MS_MAX + 1)
    assert all({bucket_of(first), bucket_of(beyond - 1)} == {n} for n, (first, beyond) in enumerate(bounds))
    assert all((beyond - 1 - first) / 2 <= 0.07 * first for first, beyond in bounds if beyond - first > 1)


def test_percentiles_are_those_of_the_middles() -> None:
    counts = [(63, 4), (10, 95), (1, 1)]
    assert percentiles_s(counts, (0.5, 0.95, 0.99)) == [0.01, 0.01, 0.9915]
    assert percentiles_s([(3, 1)], (0.0, 1.0)) == [0.003, 0.003]
