from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

HELP = (
    "Brings the catalogue of the pages' texts up to date with the sources, compiles it, and names what has no Chinese."
)


class Command(BaseCommand):
    help = HELP
    requires_system_checks: tuple[str, ...] = ()

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            from mqadmin import words  # needs Babel, which only those have who change texts
        except ImportError as error:
            raise CommandError(f"{error}: `make test` installs what this command needs") from error
        missing = words.rewrite()
        self.stdout.write(f"{words.CATALOGUE.relative_to(words.ROOT)} is up to date.")
        for text in missing:
            self.stdout.write(f"has no Chinese: {text}")
