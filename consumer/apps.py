"""The Django app: imports the `listeners` modules of all installed apps; its system checks judge the declarations."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import register
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules
from kombu.transport import TRANSPORT_ALIASES

from consumer.conf import clusters
from consumer.listener import registry

# By its name: most commands never talk to Redis, and its client is large.
REDIS_TRANSPORT = "consumer.hosting.redis_transport:Transport"


class ConsumerAppConfig(AppConfig):
    name = "consumer"
    label = "mq_consumer"
    verbose_name = "RocketMQ consumers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # They need the models.
        from consumer.checks import check_databases, check_listeners, check_middleware
        from consumer.hosting.schedule import install_schedule  # needs the models

        TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), REDIS_TRANSPORT))
        autodiscover_modules("listeners")
        registry.freeze(clusters())
        register("consumer")(check_listeners)
        register("consumer")(check_middleware)
        register("consumer")(check_databases)
        post_migrate.connect(install_schedule, sender=self, dispatch_uid="mq_consumer schedule")
