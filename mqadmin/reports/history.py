"""The history: what the hot window held, as Parquet that any tool reads. docs/HISTORY.md is its data dictionary.

    <data>/history/v1/lag/day=2026-11-22/hour=14/<cluster>.parquet     what was sampled
    <data>/history/v1/gaps/day=2026-11-22/hour=14/<cluster>.parquet    when it was not, or not all of it
    …/rebalances/… …/dead_letters/… …/conflicts/… …/deliveries/…       what happened meanwhile, where something did

One file holds one hour of one cluster and is replaced as a whole, so a reader sees the former or the new one, and an
append that is killed leaves nothing but a file whose name begins with a dot. Times are UTC.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from django.utils.translation import gettext as _

from mqadmin.lag.lateness import LATE_AFTER_S
from mqadmin.reports.periods import day_bounds

VERSION = 1
HOUR_S = 3600
# What comes in the first cycle of the next hour, or day, says until when the last of this one held.
NEXT_CYCLE = timedelta(seconds=LATE_AFTER_S)
# A row group is what one task of Spark reads at a time: some MB.
ROWS_PER_GROUP = 50_000
# The state of a gap whose samples were removed before they were appended.
LOST = "lost"
_META = b"mqadmin"
_TIME = pa.timestamp("us", tz="UTC")

LAG = pa.schema(
    [
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("consumer_group", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("at", _TIME, nullable=False),
        pa.field("until", _TIME, nullable=False),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("members", pa.int32()),
        pa.field("brokers", pa.list_(pa.string()), nullable=False),
        pa.field("queues", pa.list_(pa.int32()), nullable=False),
        pa.field("committed", pa.list_(pa.int64()), nullable=False),
        pa.field("ends", pa.list_(pa.int64()), nullable=False),
        pa.field("waiting_since_ms", pa.list_(pa.int64()), nullable=False),
        pa.field("doubt_ms", pa.list_(pa.int32()), nullable=False),
    ]
)
GAPS = pa.schema(
    [
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("at", _TIME, nullable=False),
        pa.field("until", _TIME, nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("note", pa.string(), nullable=False),
    ]
)
REBALANCES = pa.schema(
    [
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("consumer_group", pa.string(), nullable=False),
        pa.field("at", _TIME, nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("client_id", pa.string(), nullable=False),
        pa.field("moved_queues", pa.int32(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
    ]
)
DEAD_LETTERS = pa.schema(
    [
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("consumer_group", pa.string(), nullable=False),
        pa.field("at", _TIME, nullable=False),
        pa.field("origin_topic", pa.string(), nullable=False),
        pa.field("tag", pa.string(), nullable=False),
        pa.field("failure_class", pa.string(), nullable=False),
        pa.field("failure_text", pa.string(), nullable=False),
        pa.field("dead_count", pa.int64(), nullable=False),
    ]
)
CONFLICTS = pa.schema(
    [
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("consumer_group", pa.string(), nullable=False),
        pa.field("at", _TIME, nullable=False),
        pa.field("until", _TIME, nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
    ]
)
DELIVERIES = pa.schema(
    [
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("consumer_group", pa.string(), nullable=False),
        pa.field("at", _TIME, nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("from_ms", pa.list_(pa.int64()), nullable=False),
        pa.field("to_ms", pa.list_(pa.int64()), nullable=False),
        pa.field("counts", pa.list_(pa.int64()), nullable=False),
    ]
)
SCHEMAS = {
    "lag": LAG,
    "gaps": GAPS,
    "rebalances": REBALANCES,
    "dead_letters": DEAD_LETTERS,
    "conflicts": CONFLICTS,
    "deliveries": DELIVERIES,
}
# What happened, beside what was sampled: files of hours in which something did.
EVENTS = ("rebalances", "dead_letters", "conflicts", "deliveries")


class BadHistory(Exception):
    """A file of the history cannot be read; the text names it and says what to do."""


@dataclass(frozen=True, slots=True)
class History:
    """The data set in `folder`."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / f"v{VERSION}"

    def path(self, kind: str, cluster: str, hour: datetime) -> Path:
        """Returns the file of one hour of one cluster."""
        utc = hour.astimezone(UTC)
        return self.root / kind / f"day={utc:%Y-%m-%d}" / f"hour={utc:%H}" / f"{cluster}.parquet"

    def files(self, kind: str, day: date) -> list[Path]:
        """Returns the files of a day, in the order of time."""
        return sorted((self.root / kind / f"day={day:%Y-%m-%d}").glob("hour=*/[!.]*.parquet"))

    def drafts(self, day: date) -> list[Path]:
        """Returns what was begun of a day's files and not put in its place, of all kinds."""
        return sorted(self.root.glob(f"*/day={day:%Y-%m-%d}/hour=*/.*.parquet.*"))

    def days(self) -> list[date]:
        """Returns the days of which there is something, oldest first."""
        return self._days("lag")

    def is_complete(self, cluster: str, hour: datetime, kind: str = "lag") -> bool:
        """Tells whether the hour was over when its file was written; a file that cannot be read is not."""
        path = self.path(kind, cluster, hour)
        if not path.exists():
            return False
        try:
            return bool(json.loads((pq.read_schema(path).metadata or {}).get(_META, b"{}")).get("is_complete"))
        except (pa.ArrowException, OSError, ValueError):
            return False

    def check(self, kind: str, cluster: str, day: date) -> list[Path]:
        """Returns a cluster's files of a day. Raises BadHistory for one that is not of this history."""
        paths = [path for path in self.files(kind, day) if path.stem == cluster]
        for path in paths:
            try:
                schema = pq.read_schema(path)
            except (pa.ArrowException, OSError) as error:
                words = _("%(path)s cannot be read: move it away. %(error)s")
                raise BadHistory(words % {"path": path, "error": str(error).splitlines()[0]}) from error
            if not schema.equals(SCHEMAS[kind]):
                words = _("%(path)s has other columns than the history: move it away.")
                raise BadHistory(words % {"path": path})
        return paths

    def damaged(self, cluster: str, day: date) -> Path | None:
        """Returns the first of a cluster's files of a day that cannot be read to its end; None where all can."""
        for path in (one for kind in SCHEMAS for one in self.files(kind, day) if one.stem == cluster):
            try:
                with pq.ParquetFile(path) as file:
                    for _batch in file.iter_batches():
                        pass
            except (pa.ArrowException, OSError):
                return path
        return None

    def strays(self, cluster: str, day: date) -> list[Path]:
        """Returns the files that have samples of another time: of a clock that was ahead, or put there by hand."""
        begin, end = day_bounds(day)
        return [path for path in self.check("lag", cluster, day) if _reaches_out(path, begin, end + NEXT_CYCLE)]

    def lost(self, cluster: str, day: date) -> list[tuple[datetime, datetime]]:
        """Returns from when until when samples of a day were removed before they were appended.

        A file that cannot be read says nothing: no figure is made of gaps.
        """
        found: list[tuple[datetime, datetime]] = []
        for path in (one for one in self.files("gaps", day) if one.stem == cluster):
            try:
                rows = pq.read_table(path, filters=[("state", "=", LOST)], partitioning=None).to_pylist()
            except (pa.ArrowException, OSError):
                continue
            for row in rows:
                is_next = bool(found) and found[-1][1] == row["at"]
                since = found.pop()[0] if is_next else row["at"]
                found.append((since, row["until"]))
        return found

    def groups(self, cluster: str, day: date) -> set[str]:
        """Returns the groups that were sampled on a day. Raises BadHistory."""
        found: set[str] = set()
        for path in self.check("lag", cluster, day):
            names = pq.read_table(path, columns=["consumer_group"], read_dictionary=["consumer_group"])
            for chunk in names.column(0).chunks:
                found.update(chunk.dictionary.to_pylist())
        return found

    @contextmanager
    def writing(self, kind: str, cluster: str, hour: datetime, *, is_complete: bool) -> Iterator[pq.ParquetWriter]:
        """Writes a file and puts it in its place when the block ends; when it raises, what was there stays."""
        path = self.path(kind, cluster, hour)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        meta = {_META: json.dumps({"version": VERSION, "is_complete": is_complete}).encode()}
        try:
            with pq.ParquetWriter(draft, SCHEMAS[kind].with_metadata(meta), compression="zstd") as writer:
                yield writer
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)

    def remove_before(self, day: date) -> int:
        """Removes what is older than a day; returns how many days of lag that were."""
        count = len([one for one in self.days() if one < day])
        for kind in SCHEMAS:
            for one in self._days(kind):
                if one < day:
                    shutil.rmtree(self.root / kind / f"day={one:%Y-%m-%d}", ignore_errors=True)
        return count

    def _days(self, kind: str) -> list[date]:
        found = []
        for folder in (self.root / kind).glob("day=*"):
            with suppress(ValueError):
                found.append(date.fromisoformat(folder.name.removeprefix("day=")))
        return sorted(found)


def _reaches_out(path: Path, begin: datetime, end: datetime) -> bool:
    """Tells by a file's statistics whether it has rows from before or after."""
    meta = pq.read_metadata(path)
    names = meta.schema.to_arrow_schema().names
    for group in (meta.row_group(number) for number in range(meta.num_row_groups)):
        first, last = (group.column(names.index(name)).statistics for name in ("at", "until"))
        if first is not None and last is not None and first.has_min_max and (first.min < begin or last.max > end):
            return True
    return False


def hour_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
