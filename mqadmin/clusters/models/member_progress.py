"""Where a member said that it is in its queues."""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.models.member import Member


class MemberProgress(models.Model):
    """What a member said last of the queues that it holds (`held_queues.py` reads `queues`).

    `consume_timeout_s`: how long one call of its listener may take, by its own settings; null where it did not say.
    """

    member = models.OneToOneField(Member, on_delete=models.CASCADE, related_name="progress", primary_key=True)
    told_at = models.DateTimeField()
    consume_timeout_s = models.PositiveIntegerField(null=True, blank=True)
    queues = models.JSONField(default=list, blank=True)

    def __str__(self) -> str:
        return f"{self.member} at {self.told_at}"
