"""What beat does and how often: rows of django-celery-beat, kept by every `migrate`.

A row is made when it is missing, and afterwards keeps what people change in it (its interval, whether it is on); only
its task and queue are ours to set. A due task that finds its queue busy expires before the next one is due, so nothing
piles up while no worker runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connections


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    task: str
    every_s: int
    queue: str


ENTRIES = (
    Entry("end abandoned actions", "mqadmin.action_runs.tasks.end_abandoned_runs", 300, "jobs"),
    Entry("follow and poll clusters", "mqadmin.observing.tasks.ensure_observing", 5, "jobs"),
    Entry("sample lag", "mqadmin.lag.tasks.sample_lag", 30, "jobs"),
    Entry("read brokers' figures", "mqadmin.metrics.tasks.sample_brokers", 60, "jobs"),
    Entry("forget ended log-ins", "mqadmin.people.tasks.forget_ended_log_ins", 3600, "jobs"),
    Entry("keep declared objectives", "mqadmin.objectives.tasks.keep_declared", 30, "jobs"),
    Entry("index dead letters", "mqadmin.deadletters.tasks.index_dead_letters", 15, "jobs"),
    Entry("remove old dead letters", "mqadmin.deadletters.tasks.remove_old_dead_letters", 3600, "jobs"),
    Entry("read retries", "mqadmin.retries.tasks.index_retries", 15, "jobs"),
    Entry("remove old retries", "mqadmin.retries.tasks.remove_old_retries", 3600, "jobs"),
    Entry("drive replays", "mqadmin.replays.tasks.drive_replays", 5, "jobs"),
    Entry("remove old replays", "mqadmin.replays.tasks.remove_old_replays", 3600, "jobs"),
    Entry("remove old files of replays", "mqadmin.replays.tasks.remove_old_replay_files", 3600, "jobs"),
    Entry("apply rules for dead letters", "mqadmin.deadletter_rules.tasks.apply_dead_letter_rules", 30, "jobs"),
    Entry("forget old counts of rules", "mqadmin.deadletter_rules.tasks.forget_old_rule_counts", 3600, "jobs"),
    Entry("ask members", "mqadmin.subscriptions.tasks.ask_members", 15, "jobs"),
    Entry("remove old subscriptions", "mqadmin.subscriptions.tasks.remove_old_subscriptions", 3600, "jobs"),
    Entry("ask for producers", "mqadmin.producers.tasks.ask_for_producers", 60, "jobs"),
    Entry("look at rules for alerts", "mqadmin.alerts.tasks.look_at_rules", 10, "jobs"),
    Entry("deliver alerts", "mqadmin.alerts.tasks.hand_out_deliveries", 5, "jobs"),
    Entry("remove old alerts", "mqadmin.alerts.tasks.remove_old_alerts", 3600, "jobs"),
    Entry("append the history", "mqadmin.reports.tasks.append_history", 3600, "reports"),
    Entry("send mails of reports", "mqadmin.console.tasks.hand_out_report_mails", 60, "jobs"),
    Entry("make reports", "mqadmin.reports.tasks.make_reports", 300, "reports"),
    Entry("judge pauses of rebalances", "mqadmin.rebalances.tasks.judge_pauses", 60, "jobs"),
    Entry("prune the rebalance history", "mqadmin.rebalances.tasks.prune_history", 3600, "jobs"),
)


def install(using: str = "default", **_: Any) -> None:
    """Writes the schedules (a `post_migrate` hook). Does nothing where django-celery-beat has no tables (yet)."""
    task_model = apps.get_model("django_celery_beat", "PeriodicTask")
    interval_model = apps.get_model("django_celery_beat", "IntervalSchedule")
    if task_model._meta.db_table not in connections[using].introspection.table_names():
        return
    for entry in ENTRIES:
        ours = {"task": entry.task, "queue": entry.queue}
        row = task_model.objects.using(using).filter(name=entry.name).first()
        if row is None:
            interval, _created = interval_model.objects.using(using).get_or_create(
                every=entry.every_s, period="seconds"
            )
            task_model.objects.using(using).create(
                name=entry.name, interval=interval, expire_seconds=entry.every_s, **ours
            )
        elif any(getattr(row, name) != value for name, value in ours.items()):
            task_model.objects.using(using).filter(pk=row.pk).update(**ours)
