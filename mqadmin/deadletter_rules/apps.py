from __future__ import annotations

from django.apps import AppConfig


class DeadLetterRulesConfig(AppConfig):
    name = "mqadmin.deadletter_rules"
    label = "mq_deadletter_rules"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.deadletter_rules import (  # needs the models; importing the receivers connects them
            delete_rule,
            make_rule,
            receivers,  # noqa: F401
            set_rule_running,
        )

        registry.register(make_rule.DECLARATION, set_rule_running.DECLARATION, delete_rule.DECLARATION)
