"""The queues and the hours of a day, as its run wrote them.

They are in the report's Parquet alone: of 10,000 groups they are 80,000 and 240,000 rows a day, which no page joins
with anything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_MOVED = ("produced", "consumed", "retried", "dead")
_QUEUE = ("consumer_group", "topic", "broker", "queue")
_QUEUE_FIGURES = ("lag_mean", "lag_max", "produced", "skew", "produced_skew")
_HOUR = ("consumer_group", "hour")
_HOUR_FIGURES = (
    *("known_ms", "lag_mean", "lag_max", "lag_last", "lag_p50", "lag_p95", "over_ms"),
    *(*_MOVED, *(f"gap_{name}" for name in _MOVED), "retry_wait_ms", "members"),
)


class BadResult(Exception):
    """A file of a report cannot be read to its end."""


@dataclass(frozen=True, slots=True)
class ResultRows:
    """Rows in the order of some columns, of which only those that are asked for become Python's."""

    table: pa.Table
    order: Sequence[str]

    def after(self, position: Sequence[Any] | None, size: int) -> list[dict[str, Any]]:
        places = range(self.table.num_rows)
        first = 0 if position is None else bisect_right(places, list(position), key=self._position_at)
        return list(self.table.slice(first, size).to_pylist())

    def position(self, row: Mapping[str, Any]) -> list[Any]:
        return [row[name] for name in self.order]

    def total_count(self) -> int:
        return int(self.table.num_rows)

    def _position_at(self, place: int) -> list[Any]:
        return self.position(self.table.slice(place, 1).to_pylist()[0])


def queue_rows(path: Path, group: str) -> ResultRows | None:
    """Returns the queues in a report's file, those of one group or ("") of all, the most uneven first.

    None where nothing here reads it. Raises BadResult.
    """
    table = _read(path, (*_QUEUE, *_QUEUE_FIGURES), group)
    if table is None:
        return None
    import pyarrow as pa  # it is installed where the table was read
    import pyarrow.compute as pc  # likewise

    # What is not known comes last, and so does a queue without lag.
    uneven = pc.negate(pc.fill_null(table["skew"], 0.0)).cast(pa.float64())
    return _sorted(table.append_column("order", uneven), ("order", *_QUEUE))


def hour_rows(path: Path, group: str) -> ResultRows | None:
    """Returns the hours in a report's file, those of one group or ("") of all, group by group.

    None where nothing here reads it. Raises BadResult.
    """
    table = _read(path, (*_HOUR, *_HOUR_FIGURES), group)
    return None if table is None else _sorted(table, _HOUR)


def _read(path: Path, names: Sequence[str], group: str) -> pa.Table | None:
    """Returns these columns; one that the file has not, since an older version wrote it, is null."""
    try:
        import pyarrow as pa  # only where the reports' requirements are installed
        import pyarrow.parquet as pq  # likewise
    except ImportError:
        return None
    filters = [("consumer_group", "=", group)] if group else None
    try:
        there = set(pq.read_schema(path).names)
        table = pq.read_table(
            path, columns=[name for name in names if name in there], filters=filters, partitioning=None
        )
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise BadResult(str(error).splitlines()[0]) from error
    for name in names:
        if name not in there:
            table = table.append_column(name, pa.nulls(table.num_rows))
    return table


def _sorted(table: pa.Table, order: Sequence[str]) -> ResultRows:
    return ResultRows(table.sort_by([(name, "ascending") for name in order]), order)
