"""One row per run of an action: done, partial, failed, unknown or refused. Written once, never changed."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

SUBJECT_CHARS_MAX = 255
REASON_CHARS_MAX = 2000


class Outcome(models.TextChoices):
    """The outcome of a run; UNKNOWN where no answer came, so that it may have been carried out."""

    DONE = "done", "done"
    PARTIAL = "partial", "done in part"
    FAILED = "failed", "failed"
    UNKNOWN = "unknown", "not known"
    REFUSED = "refused", "refused"


class AuditEntry(models.Model):
    """One run of an action. Names instead of foreign keys: it outlives person, cluster and subject.

    `before` and `after` are values of the subject, or of each item by its name; null where it is not known. `items`:
    {"item", "state", "words"} per item. `undo` names the action that takes it back, with its arguments. `way` is how
    the wish came in (page, rest, celery, command), `via` the token or job that acted for the account. `cluster` "": the
    installation itself. `batch` is what entries of one change of many subjects have in common.
    """

    run = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField(default=timezone.now, db_index=True)
    actor = models.CharField(max_length=150)
    action = models.CharField(max_length=60)
    cluster = models.CharField(max_length=100)
    subject = models.CharField(max_length=SUBJECT_CHARS_MAX)
    arguments = models.JSONField(default=dict, blank=True)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    items = models.JSONField(default=list, blank=True)
    outcome = models.CharField(max_length=8, choices=Outcome)
    reason = models.CharField(max_length=REASON_CHARS_MAX, blank=True, default="")
    undo = models.JSONField(null=True, blank=True)
    way = models.CharField(max_length=10, blank=True, default="")
    address = models.CharField(max_length=64, blank=True, default="")
    user_agent = models.CharField(max_length=200, blank=True, default="")
    via = models.CharField(max_length=100, blank=True, default="")
    batch = models.UUIDField(null=True, blank=True, db_index=True)

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.cluster}/{self.subject} {self.outcome}"
