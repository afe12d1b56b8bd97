from __future__ import annotations

from django.apps import AppConfig


class LagConfig(AppConfig):
    name = "mqadmin.lag"
    label = "mq_lag"

    def ready(self) -> None:
        from mqadmin.lag import receivers  # noqa: F401 - models exist only now; importing it connects them
