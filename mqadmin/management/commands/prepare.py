"""Makes an install ready to be started: its database, the default cluster, the first person who can log in."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from mqadmin.clusters.default_cluster import ensure_default_cluster


class Command(BaseCommand):
    help = (
        "Checks the project, migrates the database, makes the default cluster and the first user; `up` does it first."
    )
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        # Before the workers run, so that whoever logs in early finds the cluster, and a live page of it.
        ensure_default_cluster()
        call_command("ensure_admin", stdout=self.stdout, no_color=True)
