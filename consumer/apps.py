"""The Django app: imports the `listeners` modules of all installed apps, and refuses contradictory declarations."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules

from consumer.listener import ListenerError, registry


class ConsumerAppConfig(AppConfig):
    name = "consumer"
    label = "mq_consumer"
    verbose_name = "RocketMQ consumers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Raises ImproperlyConfigured, which names every error in the declarations."""
        from consumer.hosting.schedule import install_schedule  # needs the models

        autodiscover_modules("listeners")
        try:
            registry.freeze()
        except ListenerError as error:
            raise ImproperlyConfigured(str(error)) from error
        post_migrate.connect(install_schedule, sender=self, dispatch_uid="mq_consumer schedule")
