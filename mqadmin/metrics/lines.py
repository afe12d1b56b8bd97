"""Gauges of which there is a sample for every group or topic, written as lines at once.

The library makes an object of every sample and sorts its labels: at 10,000 groups that was most of what a scrape cost.
Same text: labels by their names, values escaped, numbers as Go writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Lines:
    """A gauge; `add_metric` as `GaugeMetricFamily` has it."""

    def __init__(self, name: str, documentation: str, *labels: str) -> None:
        self._places = sorted(range(len(labels)), key=labels.__getitem__)
        pairs = ",".join(f'{labels[place]}="%s"' for place in self._places)
        self._line = f"{name}{{{pairs}}} %s\n"
        self._lines = [f"# HELP {name} {documentation}\n# TYPE {name} gauge\n"]
        self._escaped = cache(_escaped)
        self._number = cache(floatToGoString)

    def add_metric(self, labels: Sequence[str], value: float) -> None:
        """Adds a sample; `labels` are their values, in the order of their names."""
        escaped = self._escaped
        self._lines.append(self._line % (*[escaped(labels[place]) for place in self._places], self._number(value)))

    @property
    def text(self) -> str:
        return "".join(self._lines)


def text_of(families: Iterable[Metric | Lines]) -> bytes:
    """Returns what a scrape answers."""
    few: list[Metric] = []
    parts: list[str] = []
    for family in families:
        if isinstance(family, Lines):
            parts.append(family.text)
        else:
            few.append(family)
    return "".join(parts).encode() + generate_latest(_Few(few))


class _Few(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
