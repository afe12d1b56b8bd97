"""One row per run of an action: done, partial, failed, unknown or refused. Written once, by `chain.py`."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

ACTOR_CHARS_MAX = 150
ACTION_CHARS_MAX = 60
CLUSTER_CHARS_MAX = 100
SUBJECT_CHARS_MAX = 255
REASON_CHARS_MAX = 2000
# SHA-256 in hexadecimal digits.
HASH_CHARS = 64


class Outcome(models.TextChoices):
    """The outcome of a run; UNKNOWN where no answer came, so that it may have been carried out."""

    DONE = "done", _("done")
    PARTIAL = "partial", _("done in part")
    FAILED = "failed", _("failed")
    UNKNOWN = "unknown", _("not known")
    REFUSED = "refused", _("refused")


class AuditEntry(models.Model):
    """One run of an action. Names instead of foreign keys: it outlives person, cluster and subject.

    `before` and `after` are values of the subject, or of each item by its name; null where it is not known. `items`:
    {"item", "state", "words"} per item. `undo` names the action that takes it back, with its arguments. `way` is how
    the wish came in (page, rest, celery, command), `via` the token or job that acted for the account. `cluster` "": the
    installation itself. `batch` is what entries of one change of many subjects have in common. Entries are numbered
    without gaps from 1; `hash` is that of all the rest and of `previous_hash`, the hash of the entry before.
    """

    number = models.PositiveBigIntegerField(unique=True)
    previous_hash = models.CharField(max_length=HASH_CHARS, blank=True, default="")
    hash = models.CharField(max_length=HASH_CHARS)

    run = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField(default=timezone.now, db_index=True)
    actor = models.CharField(max_length=ACTOR_CHARS_MAX)
    action = models.CharField(max_length=ACTION_CHARS_MAX)
    cluster = models.CharField(max_length=CLUSTER_CHARS_MAX)
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

    class Meta:
        # Each filter of the list, in the list's order.
        indexes = (
            models.Index(fields=["actor", "-number"], name="mq_audit_actor"),
            models.Index(fields=["action", "-number"], name="mq_audit_action"),
            models.Index(fields=["cluster", "-number"], name="mq_audit_cluster"),
            models.Index(fields=["outcome", "-number"], name="mq_audit_outcome"),
        )

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.cluster}/{self.subject} {self.outcome}"


class AuditCut(models.Model):
    """Where the oldest entries were removed: up to and with the number `through`, whose hash was `hash`."""

    through = models.PositiveBigIntegerField(unique=True)
    hash = models.CharField(max_length=HASH_CHARS)
    removed_count = models.PositiveBigIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    at = models.DateTimeField()
    signature = models.CharField(max_length=HASH_CHARS)

    def __str__(self) -> str:
        return f"cut after entry {self.through}"
