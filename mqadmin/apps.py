"""The project itself as an app: its management commands, and beat's entries after every migration."""

from __future__ import annotations

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate

from mqadmin import beat


class MqadminConfig(AppConfig):
    name = "mqadmin"
    label = "mqadmin"

    def ready(self) -> None:
        post_migrate.connect(beat.install, sender=apps.get_app_config("django_celery_beat"))
