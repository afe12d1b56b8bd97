"""Checks and exports the audit from the command line."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from mqadmin.audit import chain, selectors
from mqadmin.audit.chain import Head
from mqadmin.audit.selectors import AuditFilter


class Command(BaseCommand):
    help = "Checks the chain of the audit, or writes its entries as JSON Lines."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the two verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        check = verbs.add_parser("check", help="go through the whole chain and name the first entry that is broken")
        check.add_argument("--head", type=_head, help="NUMBER:HASH, as an earlier check printed it")
        verbs.add_parser("export", help="write all entries, a line of JSON each, oldest first")

    def handle(self, *args: Any, **options: Any) -> None:
        """Runs the verb. Raises CommandError when the chain is broken."""
        if options["verb"] == "export":
            for line in chain.lines(selectors.export(AuditFilter())):
                self.stdout.write(line, ending="")
            return
        report = chain.check(options["head"])
        if report.fault:
            raise CommandError(f"the audit is broken: {report.fault}")
        if report.cut is not None:
            cut = report.cut
            self.stdout.write(f"cut after entry {cut.through} on {cut.at.isoformat(timespec='seconds')}, signed")
        self.stdout.write(f"{report.checked_count} entries, each follows the one before it")
        self.stdout.write(f"head {report.head.number}:{report.head.hash}")


def _head(text: str) -> Head:
    number, _, digest = text.partition(":")
    return Head(int(number), digest)
