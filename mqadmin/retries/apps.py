from __future__ import annotations

from django.apps import AppConfig


class RetriesConfig(AppConfig):
    name = "mqadmin.retries"
    label = "mq_retries"
