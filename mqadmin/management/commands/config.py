"""`manage.py config export|plan|apply CLUSTER`: topics and groups as a YAML file (docs/CONFIGURATION.md).

`plan` exits with 0 when nothing differs and with 2 when something does; `apply` with 0 when all was done, else with 1.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from mqadmin.action_runs.runs import Result
from mqadmin.audit.models import Outcome
from mqadmin.clusters.models import Cluster
from mqadmin.configuration import document, planning
from mqadmin.configuration.planning import Step
from mqadmin.people.caller import Caller, Way

DIFFERS = 2


class Command(BaseCommand):
    help = "Exports topics and groups of a cluster as YAML, compares a file with what is there, or applies it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        for verb, words in (
            ("export", "prints what is there"),
            ("plan", "prints what applying the file would change"),
            ("apply", "changes what differs from the file; deletes nothing"),
        ):
            one = verbs.add_parser(verb, help=words)
            one.add_argument("cluster", help="the console's name of the cluster")
            if verb != "export":
                one.add_argument("file", help="the file; - for standard input")
            one.add_argument("--as", dest="person", default="admin", help="whose permissions count (admin)")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if cluster is None:
            known = ", ".join(Cluster.objects.values_list("name", flat=True))
            raise CommandError(f"there is no cluster {options['cluster']!r}; known are: {known or 'none'}")
        person = get_user_model().objects.filter(username=options["person"], is_active=True).first()
        if person is None:
            raise CommandError(f"there is no active account {options['person']!r}: name one with --as")
        caller = Caller(person=person, way=Way.COMMAND, via=f"config {options['verb']}")
        try:
            if options["verb"] == "export":
                self._export(caller, cluster)
            else:
                steps = planning.plan(caller, cluster, document.read(_content(options["file"])))
                self._plan(steps) if options["verb"] == "plan" else self._apply(caller, cluster, steps)
        except (document.DocumentError, planning.PlanError) as error:
            raise CommandError(str(error)) from error

    def _export(self, caller: Caller, cluster: Cluster) -> None:
        entries, left_out = planning.export(caller, cluster)
        for words in left_out:
            self.stderr.write(words)
        self.stdout.write(document.write(entries), ending="")

    def _plan(self, steps: list[Step]) -> None:
        for step in steps:
            self._show(step)
        self.stdout.write(f"{len(steps)} to change" if steps else "nothing differs")
        if steps:
            sys.exit(DIFFERS)

    def _apply(self, caller: Caller, cluster: Cluster, steps: list[Step]) -> None:
        failed = 0
        for step, result in planning.apply(caller, cluster, steps):
            is_done = isinstance(result, Result) and result.outcome == Outcome.DONE
            self._show(step)
            words = (
                [result.reason, *(f"{item.item}: {item.words}" for item in result.items if item.words)]
                if (isinstance(result, Result))
                else ["somebody else is changing it"]
            )
            outcome = result.outcome if isinstance(result, Result) else "not done"
            self.stdout.write(f"  {outcome}" + "".join(f"; {one}" for one in words if one))
            failed += not is_done
        if failed:
            raise CommandError(f"{failed} of {len(steps)} were not done")
        self.stdout.write(f"{len(steps)} changed" if steps else "nothing differs")

    def _show(self, step: Step) -> None:
        for change in step.changes:
            where = f" on {change.item}" if change.item else ""
            before = change.before or {}
            differences = [
                f"{key} {before[key]!r} → {value!r}" if key in before else f"{key} {value!r}"
                for key, value in change.after.items()
                if before.get(key) != value or key not in before
            ]
            verb = "change" if before else "create"
            self.stdout.write(f"{verb} {step.entry.kind} {step.entry.name}{where}: {', '.join(differences)}")


def _content(file: str) -> bytes:
    """Raises CommandError."""
    try:
        limit = document.FILE_BYTES_MAX + 1
        if file == "-":
            return sys.stdin.buffer.read(limit)
        with Path(file).open("rb") as opened:
            return opened.read(limit)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
