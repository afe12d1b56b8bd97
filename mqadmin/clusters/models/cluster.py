"""Clusters by their name servers, and which process follows them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import models
from django.utils import timezone

NAME_CHARS_MAX = 255
# The largest number that a database has for a row.
ID_MAX = 2**63 - 1
CLUSTER_NAME_CHARS_MAX = 100
NAMESRV_CHARS_MAX = 1000
NOTE_CHARS_MAX = 500


class ClusterKind(models.TextChoices):
    UNKNOWN = "", "not known yet"
    OURS = "ours", "this project's broker"
    APACHE = "apache", "Apache RocketMQ"
    MIXED = "mixed", "this project's brokers and Apache RocketMQ's"


# A watch is answered by our brokers alone; where one cannot be watched, all are polled.
POLLED_KINDS = (ClusterKind.APACHE, ClusterKind.MIXED)


class ClusterState(models.TextChoices):
    NEW = "new", "not asked yet"
    REACHABLE = "reachable", "reachable"
    PARTIAL = "partial", "some brokers do not answer"
    UNREACHABLE = "unreachable", "unreachable"


class ClusterQuerySet(models.QuerySet["Cluster"]):
    def with_freshness(self) -> ClusterQuerySet:
        """Returns the clusters such that `followed_until` is known."""
        lease = FollowerLease.objects.filter(taken_at__lte=models.OuterRef("last_synced_at"))
        return self.annotate(lease_renewed_at=models.Subquery(lease.values("renewed_at")[:1]))


class Cluster(models.Model):
    """`namesrv` is "host:port;host:port"; `rocketmq_name` what its brokers call it.

    `last_synced_at`: when it last became reachable, or when the last complete polling cycle ended.
    """

    name = models.SlugField(unique=True, max_length=CLUSTER_NAME_CHARS_MAX)
    namesrv = models.CharField(max_length=NAMESRV_CHARS_MAX)
    # What people want to know of it: who runs it, what it is for.
    note = models.CharField(max_length=NOTE_CHARS_MAX, blank=True, default="")
    rocketmq_name = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    kind = models.CharField(max_length=10, choices=ClusterKind, blank=True, default=ClusterKind.UNKNOWN)
    state = models.CharField(max_length=12, choices=ClusterState, default=ClusterState.NEW)
    state_since = models.DateTimeField(default=timezone.now)
    # Of a polled cluster: when a worker asked it last (`asked_until`).
    last_tried_at = models.DateTimeField(null=True, blank=True)
    last_synced_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True, default="")
    # Of a followed cluster, the brokers that do not answer: name → up to when their rows are true, in milliseconds
    # since the epoch; null where that is not known.
    brokers_away = models.JSONField(default=dict, blank=True)
    # Of a followed cluster whose answers are large: up to when its rows are true while it is not asked; null: it is.
    resting_since = models.DateTimeField(null=True, blank=True)
    # Of a polled cluster: when its cycle was offered to workers last, and until when one has it; null: none has
    # (`observing/polling_claim.py`).
    poll_offered_at = models.DateTimeField(null=True, blank=True)
    poll_claimed_until = models.DateTimeField(null=True, blank=True)
    # How many requests the last polling cycle cost, and how long it took; null where the cluster is watched.
    cycle_request_count = models.PositiveIntegerField(null=True, blank=True)
    cycle_seconds = models.FloatField(null=True, blank=True)
    # Where the next polling cycle goes on: after the last topic and the last group that were asked.
    topic_cursor = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    group_cursor = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    # Of a polled cluster, messages that were to be read for their store time and had none, the latest last: topic,
    # broker, queue id, queue offset.
    unreadable_next = models.JSONField(default=list, blank=True)
    # The last hour of the sum of all groups' lag (`lag/history.py` packs it), and when its next sample is due.
    lag_history = models.BinaryField(default=bytes)
    lag_due_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = ClusterQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name

    def point_at(self, namesrv: str) -> None:
        """Gives the cluster other name servers; what was known of its brokers goes. Call it in a transaction."""
        self.brokers.all().delete()
        self.namesrv, self.rocketmq_name, self.kind, self.state = namesrv, "", ClusterKind.UNKNOWN, ClusterState.NEW
        self.last_synced_at, self.last_error, self.topic_cursor, self.group_cursor = None, "", "", ""
        self.brokers_away, self.resting_since, self.unreadable_next = {}, None, []
        # A cycle that is under way writes no more.
        self.poll_claimed_until = None
        self.save(
            update_fields=[
                "namesrv",
                "rocketmq_name",
                "kind",
                "state",
                "last_synced_at",
                "last_error",
                "topic_cursor",
                "group_cursor",
                "brokers_away",
                "resting_since",
                "unreadable_next",
                "poll_claimed_until",
            ]
        )

    @property
    def followed_until(self) -> datetime | None:
        """Returns up to when the present follower was at work; known `with_freshness`."""
        renewed_at: datetime | None = self.__dict__.get("lease_renewed_at")
        return renewed_at

    @property
    def observed_until(self) -> datetime | None:
        """Returns up to when the rows of this cluster are true; None before the first answer.

        A watch reports all changes, so the rows of a followed cluster that answers are as fresh as the follower's word,
        and while it rests between two large answers as the one before.
        Where a broker of several does not answer, it is the moment up to which all rows are.
        """
        away = self._away_since(self.brokers_away)
        return min(away) if away and self.kind == ClusterKind.OURS else self._vouched_until

    def true_until(self, seen_at: datetime | None, brokers: Iterable[str] = ()) -> datetime | None:
        """Returns up to when a row of this cluster is true that was last seen at `seen_at` (None: never).

        `brokers` are those that it is about: it is as old as the one that has been away longest.
        """
        if seen_at is None or self.kind != ClusterKind.OURS:
            return seen_at
        if away := [name for name in brokers if name in self.brokers_away]:
            return min(self._away_since(away), default=seen_at)
        return _later(seen_at, self._vouched_until)

    @property
    def _vouched_until(self) -> datetime | None:
        """Returns up to when the rows of brokers that answer are true."""
        return _later(self.last_synced_at, self.resting_since) if self.resting_since else self.observing_until

    @property
    def observing_until(self) -> datetime | None:
        """Returns up to when somebody observed the cluster, whose rows may be older while it rests."""
        is_followed = self.kind == ClusterKind.OURS and self.state in (ClusterState.REACHABLE, ClusterState.PARTIAL)
        return _later(self.last_synced_at, self.followed_until) if is_followed else self.last_synced_at

    def asked_until(self, now: datetime) -> datetime | None:
        """Returns up to when somebody asked the polled cluster, whether it answered or not; None: nobody did."""
        is_under_way = self.poll_claimed_until is not None and self.poll_claimed_until > now
        return now if is_under_way else self.last_tried_at

    def _away_since(self, names: Iterable[str]) -> list[datetime]:
        known = (self.brokers_away[name] for name in names)
        return [datetime.fromtimestamp(ms / 1000, UTC) for ms in known if ms is not None]


def _later(first: datetime | None, second: datetime | None) -> datetime | None:
    return max((moment for moment in (first, second) if moment is not None), default=None)


class FollowerLease(models.Model):
    """Which process follows the clusters: one row, `NAME`, taken by conditional update; expires unless it is renewed.

    `renewed_at` is the holder's word that the rows of the clusters that it finds reachable are true up to then, but for
    those that rest (`Cluster.resting_since`).
    """

    NAME = "follower"

    name = models.CharField(max_length=20, unique=True, default=NAME)
    holder = models.UUIDField(default=uuid.uuid4)
    # The Celery node, for people.
    worker = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    expires_at = models.DateTimeField()
    taken_at = models.DateTimeField(default=timezone.now)
    renewed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"clusters followed by {self.worker or self.holder}"
