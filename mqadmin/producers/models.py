"""One row for a producer that was seen: brokers tell who is connected, and not since when."""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster


class SeenProducer(models.Model):
    """A client of a producer group. It is dropped when it has not been seen for `SEEN_KEPT_FOR`."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="seen_producers")
    group = models.CharField(max_length=NAME_CHARS_MAX)
    client_id = models.CharField(max_length=NAME_CHARS_MAX)
    first_seen_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "group", "client_id"], name="mq_seen_producer_identity"),
        )
        indexes = (models.Index(fields=["cluster", "seen_at"], name="mq_seen_producer_by_age"),)

    def __str__(self) -> str:
        return f"{self.client_id} of {self.group}"
