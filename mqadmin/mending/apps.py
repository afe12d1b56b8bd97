from __future__ import annotations

from django.apps import AppConfig


class MendingConfig(AppConfig):
    name = "mqadmin.mending"
    label = "mq_mending"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.mending import discard_mend, mend_dead_letter, patch_dead_letters  # needs the models

        registry.register(mend_dead_letter.DECLARATION, discard_mend.DECLARATION, patch_dead_letters.DECLARATION)
