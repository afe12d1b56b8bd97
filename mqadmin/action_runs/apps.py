from __future__ import annotations

from django.apps import AppConfig


class ActionsConfig(AppConfig):
    name = "mqadmin.actions"
    label = "mq_actions"
