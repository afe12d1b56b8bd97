from __future__ import annotations

from django.apps import AppConfig


class BrokersConfig(AppConfig):
    name = "mqadmin.brokers"
    label = "mq_brokers"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.brokers import change_broker_config, set_broker_write_permission  # needs the models

        registry.register(change_broker_config.DECLARATION, set_broker_write_permission.DECLARATION)
