from __future__ import annotations

from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "mqadmin.reports"
    label = "mq_reports"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.reports import make_report, receivers, set_report_mail  # noqa: F401 - need the models; receivers listen

        registry.register(make_report.DECLARATION)
        registry.register(set_report_mail.DECLARATION)
