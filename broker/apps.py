from __future__ import annotations

from django.apps import AppConfig


class BrokerAppConfig(AppConfig):
    name = "broker"
    label = "mq_broker"
    default_auto_field = "django.db.models.BigAutoField"
