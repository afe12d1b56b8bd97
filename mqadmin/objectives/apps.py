from __future__ import annotations

from django.apps import AppConfig


class ObjectivesConfig(AppConfig):
    name = "mqadmin.objectives"
    label = "mq_objectives"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.objectives import set_objective  # needs the models

        registry.register(set_objective.DECLARATION)
