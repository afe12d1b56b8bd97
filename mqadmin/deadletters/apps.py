from __future__ import annotations

from django.apps import AppConfig


class DeadLettersConfig(AppConfig):
    name = "mqadmin.deadletters"
    label = "mq_deadletters"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.deadletters import (  # needs the models
            archive_dead_letter,
            archive_failure,
            describe_failure,
            receivers,  # noqa: F401 - importing it connects them
        )

        registry.register(
            archive_failure.ARCHIVE_DECLARATION,
            archive_failure.RESTORE_DECLARATION,
            archive_dead_letter.ARCHIVE_DECLARATION,
            archive_dead_letter.RESTORE_DECLARATION,
            describe_failure.DECLARATION,
        )
