from __future__ import annotations

from django.apps import AppConfig


class ObservingConfig(AppConfig):
    name = "mqadmin.observing"
    label = "mq_observing"
