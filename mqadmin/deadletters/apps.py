from __future__ import annotations

from django.apps import AppConfig


class DeadLettersConfig(AppConfig):
    name = "mqadmin.deadletters"
    label = "mq_deadletters"

    def ready(self) -> None:
        from mqadmin.deadletters import receivers  # noqa: F401 - models exist only now; importing it connects them
