"""The timeline of rebalances: members that joined and left, queues that moved, and what our runtime did meanwhile. Only
what was observed.
"""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.models import CLIENT_ID_CHARS_MAX, NAME_CHARS_MAX, Cluster, Group


class RebalanceKind(models.TextChoices):
    JOINED = "joined", "joined"
    LEFT = "left", "left"
    LOST = "lost", "lost"
    GONE = "gone", "not there any more"
    SUBSCRIPTION_CHANGED = "subscription_changed", "subscription changed"
    QUEUES_MOVED = "queues_moved", "queues moved"
    INSTANCE_STARTED = "instance_started", "an instance started"
    INSTANCE_STOPPED = "instance_stopped", "an instance stopped"
    INSTANCE_DIED = "instance_died", "an instance died"
    SCALED = "scaled", "another number of instances is wanted"


class RebalanceSource(models.TextChoices):
    WATCH = "watch", "reported by the broker"
    POLL = "poll", "found between two samples"
    RUNTIME = "runtime", "by this project's runtime"


class RebalanceEvent(models.Model):
    """`at` by the broker's clock; GONE where polling found a member missing and cannot say how it went.

    `details`: what the kind needs (`selectors.RebalanceRow`). `source_key` names the event within its source, so that
    an event that is read twice is stored once.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="rebalance_events")
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="rebalance_events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=24, choices=RebalanceKind)
    client_id = models.CharField(max_length=CLIENT_ID_CHARS_MAX, blank=True, default="")
    details = models.JSONField(default=dict, blank=True)
    source = models.CharField(max_length=8, choices=RebalanceSource)
    source_key = models.CharField(max_length=NAME_CHARS_MAX)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "group", "source_key"], name="mq_rebalance_event_once"),
        )
        indexes = (
            models.Index(fields=["group", "-at"], name="mq_rebalance_of_group"),
            models.Index(fields=["cluster", "-at"], name="mq_rebalance_of_cluster"),
        )

    def __str__(self) -> str:
        return f"{self.group} {self.kind} {self.client_id}"
