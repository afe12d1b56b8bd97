"""Lines are those that the library would write."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mqadmin.metrics.lines import Lines, text_of


@pytest.mark.parametrize("value", [0, 5, 1.5, -3, 123456, 1234567, 98765432101234, 0.001, float("inf")])
@pytest.mark.parametrize("name", ["orders", 'a"b', "back\\slash", "two\nlines", "订单", "100%s"])
def test_line_is_the_librarys(name: str, value: float) -> None:
    theirs = GaugeMetricFamily("lag", "How far.", labels=("topic", "cluster", "Group"))
    ours = Lines("lag", "How far.", "topic", "cluster", "Group")
    for family in (theirs, ours):
        family.add_metric([name, "local", "billing"], value)

    class One(Collector):
        def collect(self) -> list[Metric]:
            return [theirs]

    assert text_of([ours]) == generate_latest(One())


def test_families_of_both_kinds_are_one_text() -> None:
    few, many = GaugeMetricFamily("few", "A few."), Lines("many", "Many.", "topic")
    few.add_metric([], 1)
    many.add_metric(["orders"], 2)
    text = text_of([few, many])
    assert sorted(line for line in text.splitlines() if not line.startswith(b"#")) == [
        b"few 1.0",
        b'many{topic="orders"} 2.0',
    ]
