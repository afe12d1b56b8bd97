from __future__ import annotations

from django.apps import AppConfig


class ProducersConfig(AppConfig):
    name = "mqadmin.producers"
    label = "mq_producers"
