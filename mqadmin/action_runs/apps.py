from __future__ import annotations

from django.apps import AppConfig


class ActionRunsConfig(AppConfig):
    name = "mqadmin.action_runs"
    label = "mq_actions"
