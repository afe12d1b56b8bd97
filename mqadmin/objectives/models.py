"""Objectives of lag, each as long as it held: one that is changed ends, and another begins."""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster


class Objective(models.Model):
    """`group` is a name, or a pattern with `*`; `valid_until` null: it holds now. `is_declared`: by listeners' code."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="objectives", db_index=False)
    group = models.CharField(max_length=NAME_CHARS_MAX)
    is_declared = models.BooleanField(default=False)
    lag_s = models.PositiveIntegerField()
    lag = models.BigIntegerField(null=True, blank=True)
    valid_from = models.DateTimeField()
    valid_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "group", "is_declared"],
                condition=models.Q(valid_until=None),
                name="mq_objective_holds_once",
            ),
        )
        indexes = (models.Index(fields=["cluster", "valid_until", "valid_from"], name="mq_objective_by_time"),)

    def __str__(self) -> str:
        return f"{self.group}: {self.lag_s} s"
