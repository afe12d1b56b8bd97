"""Brokers of a cluster, with their scheduler."""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.figures import DueKind, SchedulerSummary
from mqadmin.clusters.models.cluster import NAME_CHARS_MAX, Cluster


class Broker(models.Model):
    """`broker_id` 0 is a master. `boot` and `revision` say how far the watch of it was read."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="brokers")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    broker_id = models.BigIntegerField(default=0)
    address = models.CharField(max_length=NAME_CHARS_MAX)
    version = models.PositiveIntegerField(null=True, blank=True)
    boot = models.CharField(max_length=64, blank=True, default="")
    revision = models.BigIntegerField(default=0)
    # Whether it was ever asked which topics it has: what it had by then is no news.
    has_told_topics = models.BooleanField(default=False)
    # The scheduler as the broker reports it; driver "" when no driver holds the lease. Null on Apache's brokers.
    scheduler_driver = models.CharField(max_length=NAME_CHARS_MAX, null=True, blank=True)  # noqa: DJ001 - null is "unknown"
    scheduler_since = models.DateTimeField(null=True, blank=True)
    scheduler_late_ms = models.BigIntegerField(null=True, blank=True)
    scheduler_waiting_count = models.BigIntegerField(null=True, blank=True)
    # The same by kind of due things, as `remoting.wire.bodies.watch.SchedulerKind` has it: [{"kind", "next_due_ms",
    # "waiting_count", "late_ms"}].
    scheduler_kinds = models.JSONField(default=list, blank=True)
    last_error = models.TextField(blank=True, default="")
    seen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "name", "broker_id"], name="mq_broker_identity"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"

    @property
    def is_answering(self) -> bool:
        return self.seen_at is not None and not self.last_error

    @property
    def scheduler(self) -> SchedulerSummary | None:
        """Returns what the broker says of its scheduler; None where it has none of ours."""
        if self.scheduler_driver is None:
            return None
        return SchedulerSummary(
            driver=self.scheduler_driver,
            since=self.scheduler_since,
            late_ms=self.scheduler_late_ms,
            waiting_count=self.scheduler_waiting_count,
            kinds=tuple(DueKind.of(kind) for kind in self.scheduler_kinds),
        )
