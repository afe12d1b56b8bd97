"""The Parquet files of reports, for pages and REST: a run wrote that of a day, a period's is made when asked for."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from django.conf import settings

from mqadmin.reports.models import DayReport
from mqadmin.reports.period_figures import PeriodPage

MEDIA_TYPE = "application/vnd.apache.parquet"


GROUPS, QUEUES, HOURS = "groups", "queues", "hours"


def day_file(report: DayReport, table: str = GROUPS) -> Path | None:
    """Returns the file with the groups of a day, its queues or its hours; None where it is not on this machine."""
    folder = Path(settings.MQADMIN_DATA) / "reports" / "v1" / report.folder / table
    return next(iter(sorted(folder.glob("part-*.parquet"))), None)


def period_file(page: PeriodPage) -> bytes | None:
    """Returns the groups of a week or a month as a file; None where the reports' requirements are not installed."""
    try:
        import pyarrow as pa  # only where the reports' requirements are installed
        import pyarrow.parquet as pq  # only where the reports' requirements are installed
    except ImportError:
        return None
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([asdict(group) for group in page.groups]), sink, compression="zstd")
    return bytes(sink.getvalue())
