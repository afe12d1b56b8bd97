"""Why messages failed, by unique key: what Apache's brokers do not keep with a retry or a dead letter."""

from __future__ import annotations

from django.db import models

from consumer.conf import CLUSTER_NAME_CHARS_MAX
from remoting.wire.failures import CLASS_CHARS_MAX, NAME_CHARS_MAX, TEXT_CHARS_MAX


class MessageFailure(models.Model):
    """The latest failure of a message in a group. `message_id` is the sender's unique key, which retries and the dead
    letter keep; `attempt` counts from 1.
    """

    cluster = models.CharField(max_length=CLUSTER_NAME_CHARS_MAX, blank=True, default="")
    group = models.CharField(max_length=255)
    message_id = models.CharField(max_length=255)
    topic = models.CharField(max_length=255)
    exception = models.CharField(max_length=CLASS_CHARS_MAX)
    text = models.CharField(max_length=TEXT_CHARS_MAX, blank=True, default="")
    listener = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    member = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    attempt = models.PositiveIntegerField()
    failed_at = models.DateTimeField()

    class Meta:
        db_table = "mq_consumer_failure"
        constraints = (
            models.UniqueConstraint(fields=["cluster", "group", "message_id"], name="mq_failure_of_message"),
        )
        indexes = (
            models.Index(fields=["failed_at"], name="mq_failure_by_time"),
            models.Index(fields=["cluster", "group", "-failed_at", "-id"], name="mq_failure_of_group"),
        )

    def __str__(self) -> str:
        return f"{self.group} {self.message_id} {self.exception}"
