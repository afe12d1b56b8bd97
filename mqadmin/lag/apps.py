from __future__ import annotations

from django.apps import AppConfig


class LagConfig(AppConfig):
    name = "mqadmin.lag"
    label = "mq_lag"
