from __future__ import annotations

from django.apps import AppConfig


class RebalancesConfig(AppConfig):
    name = "mqadmin.rebalances"
    label = "mq_rebalances"
