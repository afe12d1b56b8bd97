"""Instances that workers host: how many a group wants, who runs which, and which workers there are to run them.

Leases only decide who starts. The broker's committed offset is the only truth about progress, and a running instance
goes on consuming while this database is away. Rows are written by conditional updates: two processes may race, one
wins (`hosting/leases.py`). No limit here is shorter than 15 s, since one writer of SQLite can wait for seconds.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone


class HostedGroup(models.Model):
    """`wanted_instances` is the last word spoken: by the code when its own number changes, by people in between."""

    group = models.CharField(max_length=120, unique=True)
    wanted_instances = models.PositiveIntegerField()
    # What the listeners' code asked for when it was last looked at; 0 once no code declares the group.
    declared_instances = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.group} × {self.wanted_instances}"


class LoopsWorker(models.Model):
    """A Celery worker of the loops queue. `boot` is another at each start; `machine` as `hosting/machine.py` says."""

    node = models.CharField(max_length=255, unique=True)
    boot = models.UUIDField()
    machine = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    process_start = models.BigIntegerField()
    slots = models.PositiveIntegerField()
    is_stopping = models.BooleanField(default=False)
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.node} ({self.slots} slots)"


class LeaseState(models.TextChoices):
    WANTED = "wanted", "wanted"
    STARTING = "starting", "starting"
    RUNNING = "running", "running"
    STOPPING = "stopping", "stopping"
    ENDED = "ended", "ended"


class Word(models.TextChoices):
    RUN = "run", "run"
    STOP = "stop", "stop"


class InstanceLease(models.Model):
    """One instance from the moment it is wanted to its end.

    `worker` names the Celery worker that is to run it, `worker_boot` the start of that worker that does, `pid` and
    `process_start` the process (a child of the worker with prefork). `is_failure`: it ended by an error of its own, so
    the next one waits a little.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    group = models.ForeignKey(HostedGroup, on_delete=models.CASCADE, related_name="leases")
    state = models.CharField(max_length=10, choices=LeaseState, default=LeaseState.WANTED)
    wanted_word = models.CharField(max_length=4, choices=Word, default=Word.RUN)
    worker = models.CharField(max_length=255, blank=True, default="")
    worker_boot = models.UUIDField(null=True, blank=True)
    machine = models.CharField(max_length=255, blank=True, default="")
    pid = models.PositiveIntegerField(null=True, blank=True)
    process_start = models.BigIntegerField(null=True, blank=True)
    client_id = models.CharField(max_length=255, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=500, blank=True, default="")
    is_failure = models.BooleanField(default=False)

    class Meta:
        indexes = (models.Index(fields=["state", "ended_at"], name="mq_lease_by_state"),)

    def __str__(self) -> str:
        return f"{self.group.group} {self.state} {self.client_id or self.id}"
