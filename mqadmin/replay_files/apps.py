from __future__ import annotations

from django.apps import AppConfig


class ReplayFilesConfig(AppConfig):
    name = "mqadmin.replay_files"
    label = "mq_replay_files"
