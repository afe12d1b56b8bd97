from __future__ import annotations

from django.apps import AppConfig

from mqadmin.console.fragments import SharedFragments


class ConsoleConfig(AppConfig):
    """Owns the fragments that the pages of this process share."""

    name = "mqadmin.console"
    label = "mq_console"

    def ready(self) -> None:
        self.fragments = SharedFragments()
