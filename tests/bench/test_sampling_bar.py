"""The bar of `bench sampling`: half of a cycle for up to 10,000 groups."""

from __future__ import annotations

import pytest

from bench import sampling as bench
from mqadmin.lag import sampling


def test_cycle_is_as_long_as_the_products() -> None:
    assert bench.CYCLE_S == sampling.CYCLE_S


@pytest.mark.parametrize(
    ("group_count", "cycle_s", "expected"),
    [(10_000, 15.0, False), (10_000, 15.1, True), (100, 15.1, True), (50_000, 100.0, False)],
)
def test_a_cycle_that_takes_more_than_its_half_breaks_the_bar(group_count: int, cycle_s: float, expected: bool) -> None:
    assert bench.is_broken(group_count, cycle_s) == expected
