from __future__ import annotations

from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "mqadmin.events"
    label = "mq_events"

    def ready(self) -> None:
        from mqadmin.events import receivers  # noqa: F401 - models exist only now; importing it connects them
