from __future__ import annotations

from django.apps import AppConfig


class RebalancesConfig(AppConfig):
    name = "mqadmin.rebalances"
    label = "mq_rebalances"

    def ready(self) -> None:
        from mqadmin.rebalances import receivers  # noqa: F401 - models exist only now; importing it connects them
