"""One hour's append in a process of its own: `python -m bench.report_append HISTORY GROUPS`. Prints JSON.

The hot window has the hour as sampling leaves it in the database: the first sample of every group, then one for each
cycle in which its offsets moved, which is every second group's. The append reads it, and writes the Parquet.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

from bench.lag_samples import CYCLE_S, CYCLES_PER_HOUR
from mqadmin.reports.history import History

if TYPE_CHECKING:
    from mqadmin.lag.models import GroupSample

HOUR = datetime(2026, 11, 22, 14, tzinfo=UTC)
QUEUES = 8
ROWS_PER_INSERT = 2_000


def main(root: Path, groups: int) -> dict[str, Any]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
    django.setup()
    from django.core.management import call_command  # needs Django to be set up

    from mqadmin.clusters.models import Cluster  # needs Django to be set up
    from mqadmin.reports.appending import append_hour  # its models need Django to be set up

    call_command("migrate", verbosity=0)
    cluster = Cluster.objects.create(name="bench", namesrv="127.0.0.1:9")
    _write_hour(cluster, groups)
    history, found = History(root), {}
    # The open hour is written anew at each append; one that is over, once.
    for name, now in (("open", HOUR + timedelta(minutes=59)), ("over", HOUR + timedelta(hours=2))):
        began_s = time.perf_counter()
        found[f"{name}_rows"] = append_hour(history, cluster, HOUR, now)
        found[f"{name}_s"] = round(time.perf_counter() - began_s, 2)
    return {**found, "megabytes": round(history.path("lag", "bench", HOUR).stat().st_size / 1e6, 1)}


def _write_hour(cluster: Any, groups: int) -> None:
    from mqadmin.clusters.models import Group  # its models need Django to be set up
    from mqadmin.lag.models import GroupSample, SampledSpan, SpanState  # needs Django to be set up

    begin_s = int(HOUR.timestamp())
    rows = Group.objects.bulk_create(
        Group(cluster=cluster, name=f"group-{number:05}", seen_at=HOUR) for number in range(groups)
    )
    SampledSpan.objects.create(
        cluster=cluster, state=SpanState.COMPLETE, since_s=begin_s, until_s=begin_s + 3600 + 2 * CYCLE_S
    )
    samples = _samples(cluster, rows, begin_s)
    GroupSample.objects.bulk_create(samples, batch_size=ROWS_PER_INSERT)


def _samples(cluster: Any, groups: list[Any], begin_s: int) -> Iterator[GroupSample]:
    from mqadmin.clusters.models import VERDICT_RANKS, Verdict  # its models need Django to be set up
    from mqadmin.lag.models import GroupSample  # needs Django to be set up
    from mqadmin.lag.packing import QueueSample, Sampled, pack  # needs Django to be set up

    rank = VERDICT_RANKS[Verdict.OK]
    for cycle in range(CYCLES_PER_HOUR + 1):
        at_s = begin_s + cycle * CYCLE_S
        queues = tuple(
            QueueSample("broker-a", queue, 1_000 + cycle, 1_004 + cycle, (at_s - 4) * 1000, 0)
            for queue in range(QUEUES)
        )
        packed = pack(Sampled(rank, 4, 0, queues))
        moved = groups if cycle in (0, CYCLES_PER_HOUR) else groups[::2]
        for group in moved:
            yield GroupSample(cluster=cluster, group=group, topic_name="orders", at_s=at_s, packed=packed)


if __name__ == "__main__":
    history, groups = sys.argv[1:]
    print(json.dumps(main(Path(history), int(groups))))
