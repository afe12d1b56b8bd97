"""Failed attempts of messages that are retried, and how far the queues in which they wait have been read."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from django.db import models

from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster
from mqadmin.deadletters.models import FAILURE_CLASS_CHARS_MAX, FAILURE_TEXT_CHARS_MAX, KEYS_CHARS_MAX
from mqadmin.retries import watching
from remoting.wire.bodies.route import MASTER_ID


class DelayQueue(models.Model):
    """A queue in which messages wait for their time, and up to where it has been read. Offsets are queue offsets.

    `skipped_count`: messages that were never looked at, since reading was too far behind. `problem`: why the broker
    does not let it be read.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="delay_queues")
    topic_name = models.CharField(max_length=NAME_CHARS_MAX)
    broker_name = models.CharField(max_length=NAME_CHARS_MAX)
    queue_id = models.PositiveIntegerField()
    next_offset = models.BigIntegerField(default=0)
    skipped_count = models.BigIntegerField(default=0)
    problem = models.TextField(blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "topic_name", "broker_name", "queue_id"], name="mq_delay_queue_identity"
            ),
        )

    def __str__(self) -> str:
        return f"{self.topic_name} {self.broker_name} {self.queue_id}"


class DelayRead(models.Model):
    """How far the delay queues of a broker are read together: what waited there at `read_until` is known.

    `skipped_at`: when some that had waited were passed over, without being looked at; null: never. `boot`, `revision`:
    how far the watch of the broker had been read by then; while it tells nothing more, nothing came.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="delay_reads", db_index=False)
    broker_name = models.CharField(max_length=NAME_CHARS_MAX)
    read_until = models.DateTimeField(null=True, blank=True)
    skipped_at = models.DateTimeField(null=True, blank=True)
    boot = models.CharField(max_length=64, blank=True, default="")
    revision = models.BigIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "broker_name"], name="mq_delay_read_identity"),)

    def __str__(self) -> str:
        return f"{self.broker_name} {self.read_until}"

    def has_seen(self, sent_at: datetime) -> bool:
        """Returns whether a failed attempt of a message that was sent then would be known."""
        is_read = self.read_until is not None and self.read_until > sent_at
        if not is_read:
            is_read = self._unchanged_until is not None and self._unchanged_until > sent_at
        return is_read and (self.skipped_at is None or self.skipped_at < sent_at)

    @cached_property
    def _unchanged_until(self) -> datetime | None:
        """Returns up to when nothing more came, as far as the follower vouches for that; None: it does not."""
        cluster = Cluster.objects.with_freshness().get(pk=self.cluster_id)
        broker = cluster.brokers.filter(name=self.broker_name, broker_id=int(MASTER_ID)).first()
        if broker is None or watching.has_news(cluster, broker, self.boot, self.revision):
            return None
        return watching.watched_until(cluster)


class RetryReading(models.Model):
    """Who reads the delay queues of a cluster, and when that was done last; no row: nobody ever did."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="retry_reading", primary_key=True)
    # Until then one worker reads them; null: none does.
    claimed_until = models.DateTimeField(null=True, blank=True)
    # When the last reading began.
    read_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"reading retries of {self.cluster}"


class FailedAttempt(models.Model):
    """An attempt that failed, after which the broker keeps the message for the next one; one row, however often read.

    `attempt_count`: which attempt it was, from 1. `due_at`: when the next one comes; null where the broker does not
    say. `topic_name`, `queue_id`, `queue_offset`: where the message waits until then. What members did not tell is "".
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="failed_attempts")
    group_name = models.CharField(max_length=NAME_CHARS_MAX)
    broker_name = models.CharField(max_length=NAME_CHARS_MAX)
    topic_name = models.CharField(max_length=NAME_CHARS_MAX)
    queue_id = models.PositiveIntegerField()
    queue_offset = models.BigIntegerField()
    message_id = models.CharField(max_length=NAME_CHARS_MAX)
    origin_topic = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    tag = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    # Separated by spaces.
    keys = models.CharField(max_length=KEYS_CHARS_MAX, blank=True, default="")
    attempt_count = models.IntegerField()
    failed_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True, blank=True)
    failure_class = models.CharField(max_length=FAILURE_CLASS_CHARS_MAX, blank=True, default="")
    failure_text = models.CharField(max_length=FAILURE_TEXT_CHARS_MAX, blank=True, default="")
    failed_member = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    failed_listener = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")

    class Meta:
        constraints = (
            # A store that was made anew counts from 0 again: then the time tells its messages from the former ones.
            models.UniqueConstraint(
                fields=["cluster", "broker_name", "topic_name", "queue_id", "queue_offset", "failed_at"],
                name="mq_failed_attempt_identity",
            ),
        )
        indexes = (
            models.Index(fields=["cluster", "group_name", "-failed_at", "-id"], name="mq_failed_attempt_latest"),
            models.Index(fields=["cluster", "group_name", "due_at"], name="mq_failed_attempt_due"),
            models.Index(fields=["cluster", "message_id"], name="mq_failed_attempt_by_id"),
            models.Index(fields=["failed_at"], name="mq_failed_attempt_by_age"),
        )

    def __str__(self) -> str:
        return f"{self.group_name} {self.message_id} attempt {self.attempt_count}"
