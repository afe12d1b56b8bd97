"""What observing a cluster has cost its servers."""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.models.cluster import NAME_CHARS_MAX, Cluster


class RequestCost(models.Model):
    """The requests of observing to one broker or name server, since the row was made.

    `error_count` are those that no answer came to. `seconds` is the time that answers took, without watches: those are
    held by the broker while nothing happens. `byte_count` are the bodies of answers. What was counted within the last
    minute before a process ended may be missing.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="request_costs")
    address = models.CharField(max_length=NAME_CHARS_MAX)
    request_count = models.PositiveBigIntegerField(default=0)
    error_count = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0.0)
    byte_count = models.PositiveBigIntegerField(default=0)
    updated_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "address"], name="mq_request_cost_identity"),)

    def __str__(self) -> str:
        return f"{self.cluster}: {self.address}"
