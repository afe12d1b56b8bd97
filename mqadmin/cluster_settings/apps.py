from __future__ import annotations

from django.apps import AppConfig


class ClusterSettingsConfig(AppConfig):
    name = "mqadmin.cluster_settings"
    label = "mq_cluster_settings"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.cluster_settings import add_cluster, change_cluster, remove_cluster  # needs the models

        registry.register(add_cluster.DECLARATION, change_cluster.DECLARATION, remove_cluster.DECLARATION)
