from __future__ import annotations

from django.apps import AppConfig


class OwnershipConfig(AppConfig):
    name = "mqadmin.ownership"
    label = "mq_ownership"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.ownership import describe  # needs the models

        registry.register(describe.TOPIC_DECLARATION, describe.GROUP_DECLARATION)
