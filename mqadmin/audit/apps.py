from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate

from mqadmin.audit import triggers


class AuditConfig(AppConfig):
    name = "mqadmin.audit"
    label = "mq_audit"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.audit import expire_audit  # needs the models

        registry.register(expire_audit.DECLARATION)
        post_migrate.connect(_install_triggers, sender=self)


def _install_triggers(using: str = "default", **_: Any) -> None:
    """Makes the audit append-only again where a migration has made its tables anew."""
    connection = connections[using]
    if {"mq_audit_auditentry", "mq_audit_auditcut"} <= set(connection.introspection.table_names()):
        triggers.install(connection)
