from __future__ import annotations

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "mqadmin.console"
    label = "mq_console"
