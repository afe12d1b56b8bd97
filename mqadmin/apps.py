"""The project itself as an app: its Celery application, its commands, and beat's entries after every migration."""

from __future__ import annotations

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate

from mqadmin import beat
from mqadmin import celery as _celery  # noqa: F401 - tasks of all apps are bound to it; who loads no apps needs none


class MqadminConfig(AppConfig):
    name = "mqadmin"
    label = "mqadmin"

    def ready(self) -> None:
        post_migrate.connect(beat.install, sender=apps.get_app_config("django_celery_beat"))
