"""The last hour of every group's lag, one packed row per group (`history.py` packs it)."""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.models import Group


class LagHistory(models.Model):
    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="lag_history", primary_key=True)
    samples = models.BinaryField(default=bytes)
    updated_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"lag of {self.group}"
