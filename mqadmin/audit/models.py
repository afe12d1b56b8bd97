"""One row per action on a cluster, done or refused. Written once, never changed."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class Outcome(models.TextChoices):
    DONE = "done", "done"
    REFUSED = "refused", "refused"


class AuditEntry(models.Model):
    """Names instead of keys: the entry outlives the person, the cluster and the thing."""

    at = models.DateTimeField(default=timezone.now, db_index=True)
    actor = models.CharField(max_length=150)
    action = models.CharField(max_length=60)
    cluster = models.CharField(max_length=100)
    subject = models.CharField(max_length=255)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    outcome = models.CharField(max_length=8, choices=Outcome)
    reason = models.CharField(max_length=500, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.cluster}/{self.subject} {self.outcome}"
