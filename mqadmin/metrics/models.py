"""What brokers and members last told of their run, for `/metrics`. Written by `sampling.py`, once a minute."""

from __future__ import annotations

from datetime import timedelta

from django.db import models

from mqadmin.clusters.models import Broker, Member

INTERVAL_S = 60
# What is older is not shown.
FRESH_FOR = timedelta(seconds=3 * INTERVAL_S)


class BrokerRuntime(models.Model):
    """`figures`: the broker's runtime info (28) as it came, by Apache's names. Rates are of the last minute (315).

    `topic_rates`: topic → statistic → rate a second; `group_rates`: "topic@group" → the same. Statistics are named as
    315 names them, and lack where the broker counted nothing.
    """

    broker = models.OneToOneField(Broker, on_delete=models.CASCADE, related_name="runtime")
    figures = models.JSONField(default=dict)
    put_per_s = models.FloatField(null=True, blank=True)
    get_per_s = models.FloatField(null=True, blank=True)
    topic_rates = models.JSONField(default=dict, blank=True)
    group_rates = models.JSONField(default=dict, blank=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.broker} at {self.seen_at}"


class MemberFigures(models.Model):
    """`statuses`: topic → what the member says of its consuming (307), named as `ConsumeStatus` has it.

    `suspended`: why it consumes nothing now, "" while it does.
    """

    member = models.OneToOneField(Member, on_delete=models.CASCADE, related_name="figures")
    statuses = models.JSONField(default=dict)
    suspended = models.CharField(max_length=500, blank=True, default="")
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.member} at {self.seen_at}"
