from __future__ import annotations

from django.apps import AppConfig


class GroupsConfig(AppConfig):
    name = "mqadmin.groups"
    label = "mq_groups"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.groups import create_group, delete_group, set_group_consumption  # needs the models

        registry.register(create_group.DECLARATION, delete_group.DECLARATION, set_group_consumption.DECLARATION)
