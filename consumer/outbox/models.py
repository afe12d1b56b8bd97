"""The outbox: what was written with a database transaction and is to be sent, and who sends it now.

A row is kept for a while after it was sent, so that people can look; one that was given up is kept for longer. Only the
holder of a cluster's lease sends, so that messages of one key are sent one after the other.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from consumer.conf import CLUSTER_NAME_CHARS_MAX
from remoting.wire.limits import RETRY_TOPIC_CHARS_MAX

ORDER_KEY_CHARS_MAX = 255
ERROR_CHARS_MAX = 1000


class OutboxState(models.TextChoices):
    PENDING = "pending", "pending"
    SENT = "sent", "sent"
    FAILED = "failed", "failed"


class OutboxMessage(models.Model):
    """One message. `id` gives the order; `message_id` is its unique key with every try.

    `options` are the other fields of `remoting.client.outgoing.Message`, a delay in seconds made a moment (ms).
    """

    cluster = models.CharField(max_length=CLUSTER_NAME_CHARS_MAX, blank=True, default="")
    topic = models.CharField(max_length=RETRY_TOPIC_CHARS_MAX)
    order_key = models.CharField(max_length=ORDER_KEY_CHARS_MAX, blank=True, default="")
    body = models.BinaryField()
    options = models.JSONField(default=dict)
    message_id = models.CharField(max_length=32, unique=True)
    state = models.CharField(max_length=7, choices=OutboxState, default=OutboxState.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    next_attempt_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=ERROR_CHARS_MAX, blank=True, default="")

    class Meta:
        db_table = "mq_consumer_outbox"
        indexes = (
            models.Index(fields=["cluster", "id"], name="mq_outbox_due", condition=Q(state="pending")),
            models.Index(fields=["topic", "order_key", "id"], name="mq_outbox_key", condition=Q(state="pending")),
            models.Index(fields=["state", "ended_at", "id"], name="mq_outbox_by_state"),
        )

    def __str__(self) -> str:
        return f"{self.topic} {self.message_id} {self.state}"


class OutboxLease(models.Model):
    """The right to send one cluster's messages, until a moment; taken by a conditional update (`leases.py`)."""

    cluster = models.CharField(max_length=CLUSTER_NAME_CHARS_MAX, unique=True, blank=True)
    holder = models.UUIDField(null=True, blank=True)
    until = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "mq_consumer_outbox_lease"

    def __str__(self) -> str:
        return f"{self.cluster or 'default'} until {self.until}"
