"""The project itself as an app: its management commands."""

from __future__ import annotations

from django.apps import AppConfig


class MqadminConfig(AppConfig):
    name = "mqadmin"
    label = "mqadmin"
