from __future__ import annotations

from django.apps import AppConfig


class ConsumerConfig(AppConfig):
    name = "consumer"
    label = "mq_consumer"
    default_auto_field = "django.db.models.BigAutoField"
