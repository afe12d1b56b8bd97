"""The app of dead letters: its actions, its receivers, the index that searches them."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class DeadLettersConfig(AppConfig):
    name = "mqadmin.deadletters"
    label = "mq_deadletters"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.deadletters import (  # needs the models
            archive_dead_letter,
            archive_dead_letters,
            archive_failure,
            describe_failure,
            receivers,  # noqa: F401 - importing it connects them
        )

        registry.register(
            archive_failure.ARCHIVE_DECLARATION,
            archive_failure.RESTORE_DECLARATION,
            archive_dead_letter.ARCHIVE_DECLARATION,
            archive_dead_letter.RESTORE_DECLARATION,
            archive_dead_letters.ARCHIVE_DECLARATION,
            archive_dead_letters.RESTORE_DECLARATION,
            describe_failure.DECLARATION,
        )
        post_migrate.connect(_install_search_index, sender=self)


def _install_search_index(using: str = "default", **_: Any) -> None:
    """Makes the index of what can be searched, again where a migration has made its table anew."""
    from mqadmin.deadletters import search_index  # needs the models

    connection = connections[using]
    if search_index.TABLE in connection.introspection.table_names():
        search_index.install(connection)
