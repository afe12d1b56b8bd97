"""Reports: what each run of the job did, and what it found of each day and group."""

from __future__ import annotations

from typing import NamedTuple

from django.db import models
from django.db.models import Q

from mqadmin.clusters.models import CLIENT_ID_CHARS_MAX, NAME_CHARS_MAX, Cluster
from mqadmin.delivery import DeliveryState

PROBLEM_CHARS_MAX = 500
FOLDER_CHARS_MAX = 300
LANGUAGE_CHARS_MAX = 16


class RunState(models.TextChoices):
    """How far a run is."""

    WAITING = "waiting", "waiting"
    RUNNING = "running", "running"
    DONE = "done", "done"
    FAILED = "failed", "failed"


class ReportRun(models.Model):
    """One run: the reports of some days, of one cluster or (`cluster_name` "") of all.

    `stage` and `percent`: how far it is. `seen_at`: it was alive then. `problem`: one line, why it failed. `remark`:
    one line, what was left out all the same. `figures`: what Spark says of itself.
    """

    cluster_name = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    since = models.DateField()
    until = models.DateField()
    is_nightly = models.BooleanField(default=False)
    state = models.CharField(max_length=8, choices=RunState, default=RunState.WAITING)
    stage = models.CharField(max_length=40, blank=True, default="")
    percent = models.PositiveSmallIntegerField(default=0)
    asked_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    row_count = models.BigIntegerField(default=0)
    figures = models.JSONField(default=dict, blank=True)
    problem = models.CharField(max_length=PROBLEM_CHARS_MAX, blank=True, default="")
    remark = models.CharField(max_length=PROBLEM_CHARS_MAX, blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["state"], name="mq_report_run_one_at_a_time", condition=Q(state=RunState.RUNNING)
            ),
        )
        indexes = (models.Index(fields=["-asked_at", "-id"], name="mq_report_run_latest"),)

    def __str__(self) -> str:
        return f"reports of {self.cluster_name or 'all clusters'}, {self.since} to {self.until}"

    @property
    def is_under_way(self) -> bool:
        return self.state in (RunState.WAITING, RunState.RUNNING)

    @property
    def took_s(self) -> float | None:
        """Seconds from its start to its end; None before that."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()


class DayReport(models.Model):
    """The report of one cluster and one day (UTC). `revision` grows when a later run found other figures.

    `folder`: where its Parquet lies, below the reports' folder. `is_whole`: the day was over when it was made.
    `late_at`: since when the history has more of the day; null: it has not.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="day_reports")
    day = models.DateField()
    revision = models.PositiveIntegerField(default=1)
    digest = models.CharField(max_length=64)
    made_at = models.DateTimeField()
    is_whole = models.BooleanField()
    late_at = models.DateTimeField(null=True, blank=True)
    folder = models.CharField(max_length=FOLDER_CHARS_MAX)
    group_count = models.PositiveIntegerField()
    over_count = models.PositiveIntegerField()
    over_s = models.BigIntegerField()
    produced = models.BigIntegerField()
    consumed = models.BigIntegerField()
    retried = models.BigIntegerField()
    dead = models.BigIntegerField()
    retry_wait_s = models.BigIntegerField(default=0)
    anomaly_count = models.PositiveIntegerField(default=0)
    conflict_count = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "day"], name="mq_day_report_identity"),)

    def __str__(self) -> str:
        return f"{self.cluster} {self.day} revision {self.revision}"


class HourOfDay(NamedTuple):
    """An hour of a group on a day. The percentiles are null in reports that were made before there were any."""

    hour: int
    known_s: int
    lag_mean: float
    lag_max: int
    over_s: int
    lag_p50: float | None = None
    lag_p95: float | None = None


class GroupDay(models.Model):
    """One group in a report. Times are in seconds; null: not known. docs/REPORTS.md says what each figure means.

    `hours`: a list of `HourOfDay`s, as lists; `by_hour` reads them.
    `anomalies`: of [hour of the day, reason, value, what is usual]. `failures`: of [failure, origin topic, dead].
    `deliveries`: of [topic, messages consumed, and within how many seconds half, 95 % and 99 % of them].
    """

    report = models.ForeignKey(DayReport, on_delete=models.CASCADE, related_name="groups")
    group_name = models.CharField(max_length=NAME_CHARS_MAX)
    known_s = models.PositiveIntegerField()
    over_s = models.PositiveIntegerField()
    lag_p50 = models.FloatField()
    lag_p95 = models.FloatField()
    lag_p99 = models.FloatField()
    lag_max = models.BigIntegerField()
    lag_last = models.BigIntegerField()
    drain_s = models.FloatField(null=True, blank=True)
    worst_hour = models.PositiveSmallIntegerField(null=True, blank=True)
    produced = models.BigIntegerField()
    consumed = models.BigIntegerField()
    retried = models.BigIntegerField()
    retry_wait_s = models.BigIntegerField(default=0)
    dead = models.BigIntegerField()
    objective_s = models.PositiveIntegerField(default=60)
    objective_lag = models.BigIntegerField(null=True, blank=True)
    wait_p50_s = models.FloatField(null=True, blank=True)
    wait_p95_s = models.FloatField(null=True, blank=True)
    wait_max_s = models.FloatField(null=True, blank=True)
    delivered = models.BigIntegerField(default=0)
    delivery_p50_s = models.FloatField(null=True, blank=True)
    delivery_p95_s = models.FloatField(null=True, blank=True)
    delivery_p99_s = models.FloatField(null=True, blank=True)
    peak_in_s = models.FloatField(null=True, blank=True)
    peak_out_s = models.FloatField(null=True, blank=True)
    members = models.IntegerField(null=True, blank=True)
    is_quiet = models.BooleanField()
    is_abandoned = models.BooleanField()
    hot_queue = models.CharField(max_length=2 * NAME_CHARS_MAX, blank=True, default="")
    skew = models.FloatField(null=True, blank=True)
    skewed_queue = models.CharField(max_length=2 * NAME_CHARS_MAX, blank=True, default="")
    produced_skew = models.FloatField(null=True, blank=True)
    growth = models.FloatField(null=True, blank=True)
    produced_before = models.BigIntegerField(null=True, blank=True)
    over_s_before = models.IntegerField(null=True, blank=True)
    lag_p95_before = models.FloatField(null=True, blank=True)
    dead_before = models.BigIntegerField(null=True, blank=True)
    rebalance_count = models.PositiveIntegerField(default=0)
    moved_queues = models.PositiveIntegerField(default=0)
    lost_members = models.PositiveIntegerField(default=0)
    conflict_s = models.PositiveIntegerField(default=0)
    conflict_kind = models.CharField(max_length=20, blank=True, default="")
    forecast_in_s = models.FloatField(null=True, blank=True)
    forecast_low_s = models.FloatField(null=True, blank=True)
    forecast_high_s = models.FloatField(null=True, blank=True)
    most_out_s = models.FloatField(null=True, blank=True)
    anomalies = models.JSONField(default=list)
    failures = models.JSONField(default=list)
    deliveries = models.JSONField(default=list)
    hours = models.JSONField(default=list)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["report", "group_name"], name="mq_group_day_identity"),)
        indexes = (models.Index(fields=["report", "-over_s", "-lag_p95", "group_name"], name="mq_group_day_worst"),)

    def __str__(self) -> str:
        return f"{self.group_name} on {self.report.day}"

    @property
    def by_hour(self) -> list[HourOfDay]:
        return [HourOfDay(*one) for one in self.hours]

    @property
    def top_failure(self) -> str:
        """What most of its messages died of; "" where none did."""
        return str(self.failures[0][0]) if self.failures else ""


class ConflictTime(models.Model):
    """From when until when (null: still) members of a group did not want the same; `kind` as subscriptions name it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    group_name = models.CharField(max_length=NAME_CHARS_MAX)
    kind = models.CharField(max_length=20)
    topic_name = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    since = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (models.Index(fields=["cluster", "group_name", "until"], name="mq_conflict_time_by_group"),)

    def __str__(self) -> str:
        return f"{self.group_name}: {self.kind} since {self.since}"


class RebalanceOfGone(models.Model):
    """A rebalance of a group that was deleted: its event went with it, and the history may be written anew."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    group_name = models.CharField(max_length=NAME_CHARS_MAX)
    at = models.DateTimeField()
    kind = models.CharField(max_length=24)
    client_id = models.CharField(max_length=CLIENT_ID_CHARS_MAX, blank=True, default="")
    moved_queues = models.PositiveIntegerField(default=0)
    source = models.CharField(max_length=8)

    class Meta:
        indexes = (models.Index(fields=["cluster", "at"], name="mq_rebalance_of_gone_by_time"),)

    def __str__(self) -> str:
        return f"{self.group_name} {self.kind} {self.client_id}"


class MailRecipients(models.Model):
    """Who gets the mail of each night about a cluster in one language. `addresses`: separated by blanks."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="mail_recipients")
    language = models.CharField(max_length=LANGUAGE_CHARS_MAX)
    addresses = models.TextField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "language"], name="mq_mail_recipients_identity"),)

    def __str__(self) -> str:
        return f"{self.cluster} {self.language}"


class ReportMail(models.Model):
    """The mail about one night's report of a cluster, in one language. There is one, however often the report is made.

    `run`: the run that made the report. `recipients`: to whom the latest attempt went, addresses separated by blanks.
    `error`: why it failed.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="report_mails")
    day = models.DateField()
    language = models.CharField(max_length=LANGUAGE_CHARS_MAX)
    run = models.ForeignKey(ReportRun, on_delete=models.SET_NULL, null=True, blank=True, related_name="mails")
    state = models.CharField(max_length=8, choices=DeliveryState, default=DeliveryState.WAITING)
    attempt_count = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    recipients = models.TextField(blank=True, default="")
    error = models.CharField(max_length=PROBLEM_CHARS_MAX, blank=True, default="")

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "day", "language"], name="mq_report_mail_identity"),)
        indexes = (models.Index(fields=["state", "due_at"], name="mq_report_mail_due"),)

    def __str__(self) -> str:
        return f"{self.cluster} {self.day} {self.language}"

    @property
    def addresses(self) -> list[str]:
        return self.recipients.split()

    @property
    def recipient_count(self) -> int:
        return len(self.addresses)
