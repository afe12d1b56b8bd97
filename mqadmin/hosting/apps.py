from __future__ import annotations

from django.apps import AppConfig


class HostingConfig(AppConfig):
    name = "mqadmin.hosting"
    label = "mq_hosting"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models

        # needs the models
        from mqadmin.hosting import send_outbox_again, set_instances_running, set_wanted_instances, set_worker_draining

        registry.register(
            set_wanted_instances.DECLARATION,
            set_instances_running.DECLARATION,
            set_worker_draining.DECLARATION,
            send_outbox_again.DECLARATION,
        )
