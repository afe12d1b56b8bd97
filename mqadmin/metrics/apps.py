from __future__ import annotations

from django.apps import AppConfig


class MetricsConfig(AppConfig):
    name = "mqadmin.metrics"
    label = "mq_metrics"
