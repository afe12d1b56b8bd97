"""Runs of actions: which key was used, and which subject is being changed now. What became of a run is in the audit."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

KEY_CHARS_MAX = 100


class ActionRun(models.Model):
    """A run that claimed its key and its subject. `ended_at` null: under way. A refused run leaves no row."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    actor = models.CharField(max_length=150)
    key = models.CharField(max_length=KEY_CHARS_MAX)
    action = models.CharField(max_length=60)
    cluster = models.CharField(max_length=100)
    # Which argument names the subject: a topic and a group may have one name.
    subject_kind = models.CharField(max_length=30)
    subject = models.CharField(max_length=255)
    arguments = models.JSONField(default=dict)
    # What Caller.origin says; the audit entry takes it over.
    origin = models.JSONField(default=dict)
    batch = models.UUIDField(null=True, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["actor", "key"], name="mq_action_run_key"),
            models.UniqueConstraint(
                fields=["cluster", "subject_kind", "subject"],
                condition=models.Q(ended_at=None),
                name="mq_action_run_under_way",
            ),
        )

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.cluster}/{self.subject}"
