"""The queues of a day, as its run wrote them: the one with most lag over that of an even one of its topic first.

They are in the report's Parquet alone: of 10,000 groups they are 80,000 rows a day, which no page joins with anything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = ("consumer_group", "topic", "broker", "queue")
_FIGURES = ("lag_mean", "lag_max", "produced", "skew", "produced_skew")


class QueueRows:
    """Rows in their order, of which only those that are asked for become Python's."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def after(self, position: Sequence[Any] | None, size: int) -> list[dict[str, Any]]:
        places = range(self._table.num_rows)
        first = 0 if position is None else bisect_right(places, list(position), key=self._position_at)
        return list(self._table.slice(first, size).to_pylist())

    def position(self, row: dict[str, Any]) -> list[Any]:
        return [row["order"], *(row[name] for name in _NAMES)]

    def total_count(self) -> int:
        return int(self._table.num_rows)

    def _position_at(self, place: int) -> list[Any]:
        return self.position(self._table.slice(place, 1).to_pylist()[0])


def queue_rows(path: Path, group: str) -> QueueRows | None:
    """Returns the queues in a report's file, those of one group or ("") of all; None where nothing here reads it."""
    try:
        import pyarrow as pa  # only where the reports' requirements are installed
        import pyarrow.compute as pc  # likewise
        import pyarrow.parquet as pq  # likewise
    except ImportError:
        return None
    filters = [("consumer_group", "=", group)] if group else None
    table = pq.read_table(path, columns=[*_NAMES, *_FIGURES], filters=filters, partitioning=None)
    # What is not known comes last, and so does a queue without lag.
    order = pc.negate(pc.fill_null(table["skew"], 0.0)).cast(pa.float64())
    table = table.append_column("order", order)
    return QueueRows(table.sort_by([(name, "ascending") for name in ("order", *_NAMES)]))
