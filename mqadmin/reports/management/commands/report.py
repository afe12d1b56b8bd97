"""`manage.py report`: makes reports now, in this process. The reports worker starts it for each run."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.reports import runs
from mqadmin.reports.alone import Busy
from mqadmin.reports.models import ReportRun, RunState
from mqadmin.reports.problems import problem_of


class Command(BaseCommand):
    help = "Makes the reports of a day, or of a range of days, anew."
    requires_system_checks: list[str] = []  # noqa: RUF012 - those of pages

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", default="", help="one cluster (all)")
        parser.add_argument("--since", type=date.fromisoformat, help="the first day, as 2026-11-22 (today)")
        parser.add_argument("--until", type=date.fromisoformat, help="the last day (the first one)")
        parser.add_argument("--append", action="store_true", help="only append the hot window to the history")
        parser.add_argument("--run", type=int, help="the number of a run that was taken")

    def handle(self, *args: Any, **options: Any) -> None:
        from mqadmin.reports import working  # its libraries may be missing, and take their time

        if options["append"]:
            try:
                print(f"{working.append_all()} rows")
            except Busy as busy:
                print(busy)
            return
        run = ReportRun.objects.get(pk=options["run"]) if options["run"] else self._taken(**options)
        try:
            working.work(run)
        except Exception as error:
            runs.end(run, timezone.now(), problem_of(error))
            raise CommandError(problem_of(error)) from error
        runs.end(run, timezone.now())

    def _taken(self, *, cluster: str, since: date | None, until: date | None, **_: Any) -> ReportRun:
        now = timezone.now()
        if cluster and not Cluster.objects.filter(name=cluster).exists():
            raise CommandError(f"There is no cluster {cluster}.")
        first = since or now.date()
        last = until or first
        if last < first or last > now.date():
            raise CommandError("The days must be in order, and none may be in the future.")
        runs.end_abandoned(now)
        asked = runs.ask(cluster, first, last, now)
        run = runs.start_next(now)
        if run is None or run.pk != asked.pk:
            state = RunState.RUNNING if run is None else RunState.WAITING
            raise CommandError(f"Another run is {state}; this one waits for it, and the reports worker makes it.")
        return run
