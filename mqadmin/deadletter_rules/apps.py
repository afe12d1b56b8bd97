from __future__ import annotations

from django.apps import AppConfig


class DeadLetterRulesConfig(AppConfig):
    name = "mqadmin.deadletter_rules"
    label = "mq_deadletter_rules"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.deadletter_rules import delete_rule, make_rule, set_rule_running  # needs the models

        registry.register(make_rule.DECLARATION, set_rule_running.DECLARATION, delete_rule.DECLARATION)
