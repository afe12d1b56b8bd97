from __future__ import annotations

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    name = "mqadmin.alerts"
    label = "mq_alerts"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.alerts import (  # needs the models
            acknowledge_alert,
            add_silence,
            delete_alert_channel,
            delete_alert_rule,
            end_silence,
            send_test_alert,
            set_alert_channel,
            set_alert_rule,
            set_alert_rule_running,
        )

        registry.register(
            set_alert_rule.DECLARATION,
            set_alert_rule_running.DECLARATION,
            delete_alert_rule.DECLARATION,
            set_alert_channel.DECLARATION,
            delete_alert_channel.DECLARATION,
            send_test_alert.DECLARATION,
            acknowledge_alert.DECLARATION,
            add_silence.DECLARATION,
            end_silence.DECLARATION,
        )
