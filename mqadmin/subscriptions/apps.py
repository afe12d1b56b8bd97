from __future__ import annotations

from django.apps import AppConfig


class SubscriptionsConfig(AppConfig):
    name = "mqadmin.subscriptions"
    label = "mq_subscriptions"

    def ready(self) -> None:
        from mqadmin.subscriptions import receivers  # noqa: F401 - models exist only now; importing it connects them
