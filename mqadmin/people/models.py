"""Roles for single clusters, read-only clusters, chosen languages, and log-ins.

A role for all clusters is a membership in Django's group of that name.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.people.roles import Role


class ClusterRole(models.Model):
    """The role of a person on one cluster, beside the one that they have on all."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="cluster_roles")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="roles")
    role = models.CharField(max_length=10, choices=[(role.value, role.value) for role in Role])

    class Meta:
        constraints = (models.UniqueConstraint(fields=["person", "cluster"], name="mq_people_one_role_per_cluster"),)

    def __str__(self) -> str:
        return f"{self.person}: {self.role} of {self.cluster}"


class ReadOnlyCluster(models.Model):
    """A cluster that nobody changes from here."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, primary_key=True, related_name="read_only")

    def __str__(self) -> str:
        return f"{self.cluster} is read-only"


class ChosenLanguage(models.Model):
    """The language that a person chose for the pages; without one their browser decides."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="chosen_language"
    )
    code = models.CharField(max_length=10)

    def __str__(self) -> str:
        return f"{self.person}: {self.code}"


class LogIn(models.Model):
    """One log-in of a person. Its session is Django's; when that is gone, so is the log-in."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="log_ins")
    session_key = models.CharField(max_length=40, unique=True)
    at = models.DateTimeField(default=timezone.now)
    address = models.CharField(max_length=64, blank=True, default="")
    user_agent = models.CharField(max_length=200, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.person} from {self.address}"
