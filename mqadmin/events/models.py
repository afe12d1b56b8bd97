"""The window of events: one row each, numbered in the order in which they were recorded."""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.models import CLUSTER_NAME_CHARS_MAX, NAME_CHARS_MAX


class Event(models.Model):
    """`id` grows; numbers may be left out. `group_name` "": it is about the cluster. `data`: by kind, docs/LIVE.md.

    Names, not rows: what happened stays so when a group is gone.
    """

    at = models.DateTimeField()
    kind = models.CharField(max_length=20)
    cluster_name = models.CharField(max_length=CLUSTER_NAME_CHARS_MAX)
    group_name = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    data = models.JSONField(default=dict, blank=True)

    def __str__(self) -> str:
        return f"{self.pk} {self.kind} {self.cluster_name} {self.group_name}"
