from __future__ import annotations

from django.apps import AppConfig


class HostingConfig(AppConfig):
    name = "mqadmin.hosting"
    label = "mq_hosting"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.hosting import set_wanted_instances  # needs the models

        registry.register(set_wanted_instances.DECLARATION)
