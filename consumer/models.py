"""Hosted consumer instances: the wanted number per group, the lease of each instance, and the workers that run them.

Leases only decide which process starts an instance. The broker's committed offset is the only truth about progress, and
a running instance goes on consuming while this database is away. Rows are written by conditional updates, so that of
two processes only one succeeds (`hosting/leases.py`). No heartbeat times out before 15 s, since SQLite's one writer can
wait for seconds.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

from consumer.conf import CLUSTER_NAME_CHARS_MAX
from consumer.delivery.models import DeliveryHour
from consumer.failures.models import MessageFailure
from consumer.group_key import DEFAULT_CLUSTER, group_key
from consumer.outbox.models import OutboxLease, OutboxMessage

__all__ = [
    "DeliveryHour",
    "DesiredState",
    "HostedGroup",
    "InstanceLease",
    "LeaseState",
    "LoopsWorker",
    "MessageFailure",
    "OutboxLease",
    "OutboxMessage",
]


class HostedGroup(models.Model):
    """The wanted number of instances of a group on a cluster.

    It is set by the code when its own number changes, by operators in between.

    While it `is_stopped`, by an operator, none runs, and the number is kept for when it is started again.
    """

    # As the setting MQADMIN_CLUSTERS names it; "" is the one behind MQADMIN_NAMESRV.
    cluster = models.CharField(max_length=CLUSTER_NAME_CHARS_MAX, blank=True, default=DEFAULT_CLUSTER)
    group = models.CharField(max_length=120)
    wanted_instances = models.PositiveIntegerField()
    # The number in the listeners' code at the last supervision.
    declared_instances = models.PositiveIntegerField()
    # For how long the next message may wait, as the listeners' code says; null: it says nothing.
    lag_objective_s = models.PositiveIntegerField(null=True, blank=True)
    is_stopped = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "group"], name="mq_hosted_group"),)

    def __str__(self) -> str:
        return f"{self.key} × {self.wanted_instances}"

    @property
    def key(self) -> str:
        return group_key(self.group, self.cluster)


class LoopsWorker(models.Model):
    """A Celery worker of the loops queue. `boot` is new at each start; `machine` as in `hosting/machine.py`.

    One that `is_draining`, by an operator, gives its instances to the others and gets none, until it is started anew.
    """

    node = models.CharField(max_length=255, unique=True)
    boot = models.UUIDField()
    machine = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    process_start = models.BigIntegerField()
    slots = models.PositiveIntegerField()
    # Group key → digest and text of what the worker's code declares (`hosting/declared.py`).
    declared = models.JSONField(default=dict)
    is_stopping = models.BooleanField(default=False)
    is_draining = models.BooleanField(default=False)
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.node} ({self.slots} slots)"


class LeaseState(models.TextChoices):
    PENDING = "pending", "pending"
    STARTING = "starting", "starting"
    RUNNING = "running", "running"
    STOPPING = "stopping", "stopping"
    ENDED = "ended", "ended"


class DesiredState(models.TextChoices):
    RUN = "run", "run"
    STOP = "stop", "stop"


class InstanceLease(models.Model):
    """One instance, from the moment supervision places it on a worker to its end.

    `worker` names the Celery worker that is to run it, `worker_boot` the start of that worker that does, `pid` and
    `process_start` the process (a child of the worker with prefork). `desired_state` asks a running instance to stop.
    `is_failure`: it ended by an error of its own, and the next one starts after a pause.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    group = models.ForeignKey(HostedGroup, on_delete=models.CASCADE, related_name="leases")
    state = models.CharField(max_length=10, choices=LeaseState, default=LeaseState.PENDING)
    desired_state = models.CharField(max_length=4, choices=DesiredState, default=DesiredState.RUN)
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
        return f"{self.group.key} {self.state} {self.client_id or self.id}"


class ConsumedMessage(models.Model):
    """The unique key of a message that a listener with `once` has consumed; `group` with its cluster (`inbox.py`)."""

    group = models.CharField(max_length=255)
    key = models.CharField(max_length=255)
    consumed_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["group", "key"], name="mq_consumed_once"),)

    def __str__(self) -> str:
        return f"{self.group} {self.key}"
