"""The hours of delivery of each member: what a console that has the same database tells of, and reports add up."""

from __future__ import annotations

from django.db import models

from consumer.conf import CLUSTER_NAME_CHARS_MAX


class DeliveryHour(models.Model):
    """How long what a member consumed of a topic in an hour took, as [bucket, how many] (`buckets.py`).

    `cluster` and `group` as in `MessageFailure`; `hour_s`: when the hour began, seconds since the epoch.
    """

    cluster = models.CharField(max_length=CLUSTER_NAME_CHARS_MAX, blank=True, default="")
    group = models.CharField(max_length=255)
    topic = models.CharField(max_length=255)
    member = models.CharField(max_length=255)
    hour_s = models.BigIntegerField()
    counts = models.JSONField(default=list)

    class Meta:
        db_table = "mq_consumer_delivery"
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "hour_s", "group", "topic", "member"], name="mq_delivery_of_member"
            ),
        )
        indexes = (models.Index(fields=["hour_s"], name="mq_delivery_by_hour"),)

    def __str__(self) -> str:
        return f"{self.group} {self.topic} {self.member} {self.hour_s}"
