"""Topics of a cluster, and how far their queues reach."""

from __future__ import annotations

from datetime import datetime

from django.db import models

from mqadmin.clusters.figures import Figure
from mqadmin.clusters.models.cluster import NAME_CHARS_MAX, Cluster


class TopicKind(models.TextChoices):
    NORMAL = "normal", "normal"
    RETRY = "retry", "retry"
    DEAD_LETTER = "dead_letter", "dead letters"
    SYSTEM = "system", "system"


class Topic(models.Model):
    """Queue counts are sums over brokers. `message_count` counts what is stored now, `max_total` all ever sent."""

    # How many groups read it; set by selectors.
    group_count: int = 0

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="topics")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    kind = models.CharField(max_length=12, choices=TopicKind, default=TopicKind.NORMAL)
    read_queue_count = models.PositiveIntegerField(null=True, blank=True)
    write_queue_count = models.PositiveIntegerField(null=True, blank=True)
    perm = models.PositiveSmallIntegerField(null=True, blank=True)
    # What each broker that is watched has of it: name → [read queues, write queues, perm]. Empty where polled.
    of_brokers = models.JSONField(default=dict, blank=True)
    message_count = models.BigIntegerField(null=True, blank=True)
    max_total = models.BigIntegerField(null=True, blank=True)
    last_stored_at = models.DateTimeField(null=True, blank=True)
    in_per_s = models.FloatField(null=True, blank=True)
    # The total that `in_per_s` is counted from next time.
    rate_base_at = models.DateTimeField(null=True, blank=True)
    rate_base_total = models.BigIntegerField(null=True, blank=True)
    offsets_seen_at = models.DateTimeField(null=True, blank=True)
    # When time alone can change a figure of this row; null: never.
    due_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "name"], name="mq_topic_identity"),)
        indexes = (
            models.Index(fields=["cluster", "kind", "name"], name="mq_topic_by_kind"),
            models.Index(fields=["cluster", "due_at"], name="mq_topic_due", condition=models.Q(due_at__isnull=False)),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def messages_figure(self) -> Figure:
        return Figure(self.message_count, self.cluster.true_until(self.offsets_seen_at, self.of_brokers))

    @property
    def in_figure(self) -> Figure:
        return Figure(self.in_per_s, self.cluster.true_until(self.rate_base_at, self.of_brokers))


class TopicQueue(models.Model):
    """`max_history` is packed by `waiting.py`: when the max was seen to be what."""

    topic = models.ForeignKey(Topic, on_delete=models.CASCADE, related_name="queues")
    broker_name = models.CharField(max_length=NAME_CHARS_MAX)
    queue_id = models.PositiveIntegerField()
    min_offset = models.BigIntegerField()
    max_offset = models.BigIntegerField()
    max_history = models.BinaryField(default=bytes)
    last_stored_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["topic", "broker_name", "queue_id"], name="mq_topic_queue_identity"),
        )

    def __str__(self) -> str:
        return f"{self.topic} {self.broker_name} {self.queue_id}"

    @property
    def true_until(self) -> datetime | None:
        return self.topic.cluster.true_until(self.seen_at, (self.broker_name,))
