from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "mqadmin.jobs"
    label = "mq_jobs"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.jobs import delete_job, make_job, set_job_running  # needs the models

        registry.register(make_job.DECLARATION, set_job_running.DECLARATION, delete_job.DECLARATION)
