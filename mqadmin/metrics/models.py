"""What brokers last told of their run, for `/metrics`. Written by `sampling.py`, once a minute for each broker."""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.models import Broker


class BrokerRuntime(models.Model):
    """`figures`: the broker's runtime info (28) as it came, by Apache's names. Rates are of the last minute (315)."""

    broker = models.OneToOneField(Broker, on_delete=models.CASCADE, related_name="runtime")
    figures = models.JSONField(default=dict)
    put_per_s = models.FloatField(null=True, blank=True)
    get_per_s = models.FloatField(null=True, blank=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.broker} at {self.seen_at}"
