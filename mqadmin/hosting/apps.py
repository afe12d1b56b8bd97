from __future__ import annotations

from django.apps import AppConfig


class HostingConfig(AppConfig):
    name = "mqadmin.hosting"
    label = "mq_hosting"
