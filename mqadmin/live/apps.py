from __future__ import annotations

from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "mqadmin.live"
    label = "mq_live"

    def ready(self) -> None:
        from mqadmin.live import receivers  # noqa: F401 - models exist only now; importing it connects them
