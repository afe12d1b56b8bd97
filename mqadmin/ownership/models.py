"""One row for a topic or group of which somebody said whose it is; kept when the topic goes, for when it comes back."""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster

OWNER_CHARS_MAX = 100
DESCRIPTION_CHARS_MAX = 2000
RUNBOOK_CHARS_MAX = 500


class Described(models.TextChoices):
    TOPIC = "topic", "topic"
    GROUP = "group", "group"


class Ownership(models.Model):
    """`owner` is a team or a person, in free text; `runbook` an http or https address."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="ownerships")
    kind = models.CharField(max_length=5, choices=Described)
    name = models.CharField(max_length=NAME_CHARS_MAX)
    owner = models.CharField(max_length=OWNER_CHARS_MAX, blank=True, default="")
    description = models.CharField(max_length=DESCRIPTION_CHARS_MAX, blank=True, default="")
    runbook = models.URLField(max_length=RUNBOOK_CHARS_MAX, blank=True, default="")

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "kind", "name"], name="mq_ownership_identity"),)
        indexes = (models.Index(fields=["cluster", "kind", "owner", "name"], name="mq_ownership_by_owner"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.owner}"
