from __future__ import annotations

from django.apps import AppConfig, apps
from django.contrib.auth.signals import user_logged_in
from django.db.models.signals import post_migrate


class PeopleConfig(AppConfig):
    name = "mqadmin.people"
    label = "mq_people"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.people import (  # needs the models
            access,
            add_person,
            end_log_ins,
            give_role,
            language,
            log_ins,
            new_password,
            set_person_active,
            set_read_only,
        )

        registry.register(
            add_person.DECLARATION,
            give_role.DECLARATION,
            set_person_active.DECLARATION,
            end_log_ins.DECLARATION,
            new_password.DECLARATION,
            set_read_only.DECLARATION,
        )
        user_logged_in.connect(log_ins.note)
        user_logged_in.connect(language.remember)
        # Django makes an app's permissions at the signal of that app: by the last one all are there.
        last = [config for config in apps.get_app_configs() if config.models_module is not None][-1]
        post_migrate.connect(access.sync_groups, sender=last)
