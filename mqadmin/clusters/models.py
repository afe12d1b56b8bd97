"""What is known of every cluster: brokers, topics, groups, members, subscriptions, offsets.

Written by `mqadmin/observing/synchroniser.py` alone, and the derived columns of topics and groups by `mqadmin/lag/`.
What is not known is null, never 0; `seen_at` is when a broker last reported it. Times are the broker's where it reports
one. Offsets are queue offsets: the next to read, or to be written.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from django.db import models
from django.utils import timezone

from mqadmin.clusters import waiting
from mqadmin.clusters.figures import (
    Behind,
    Drain,
    DueKind,
    Figure,
    SchedulerSummary,
    SubscriptionDifference,
    drain,
)
from mqadmin.clusters.ordering import NullsLastIndex, largest_first
from mqadmin.clusters.versions import version_name
from remoting.wire.names import is_retry_topic

NAME_CHARS_MAX = 255
CLIENT_ID_CHARS_MAX = 255


class ClusterKind(models.TextChoices):
    UNKNOWN = "", "not known yet"
    OURS = "ours", "this project's broker"
    APACHE = "apache", "Apache RocketMQ"


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

    name = models.SlugField(unique=True, max_length=100)
    namesrv = models.CharField(max_length=1000)
    rocketmq_name = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    kind = models.CharField(max_length=10, choices=ClusterKind, blank=True, default=ClusterKind.UNKNOWN)
    state = models.CharField(max_length=12, choices=ClusterState, default=ClusterState.NEW)
    state_since = models.DateTimeField(default=timezone.now)
    last_tried_at = models.DateTimeField(null=True, blank=True)
    last_synced_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True, default="")
    # How many requests the last polling cycle cost; null where the cluster is watched.
    cycle_request_count = models.PositiveIntegerField(null=True, blank=True)
    # Where the next polling cycle goes on: after the last topic and the last group that were asked.
    topic_cursor = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    group_cursor = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    # The last hour of the sum of all groups' lag (`lag/history.py` packs it), and when its next sample is due.
    lag_history = models.BinaryField(default=bytes)
    lag_due_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = ClusterQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name

    @property
    def followed_until(self) -> datetime | None:
        """Up to when the present follower's word holds for this cluster; known `with_freshness`."""
        renewed_at: datetime | None = self.__dict__.get("lease_renewed_at")
        return renewed_at

    @property
    def observed_until(self) -> datetime | None:
        """Up to when the rows of this cluster are true; None before the first answer.

        A watch reports all changes, so the rows of a followed cluster that answers are as fresh as the follower's word.
        """
        is_followed = self.kind == ClusterKind.OURS and self.state == ClusterState.REACHABLE
        return _later(self.last_synced_at, self.followed_until) if is_followed else self.last_synced_at

    def true_until(self, seen_at: datetime | None) -> datetime | None:
        """Returns up to when a row of this cluster is true that was last seen at `seen_at` (None: never)."""
        if seen_at is None or self.kind != ClusterKind.OURS:
            return seen_at
        return _later(seen_at, self.observed_until)


def _later(first: datetime | None, second: datetime | None) -> datetime | None:
    return max((moment for moment in (first, second) if moment is not None), default=None)


class FollowerLease(models.Model):
    """Which process follows the clusters: one row, `NAME`, taken by conditional update; expires unless it is renewed.

    `renewed_at` is the holder's word that the rows of the clusters that it finds reachable are true up to then.
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


class Broker(models.Model):
    """`broker_id` 0 is a master. `boot` and `revision` say how far the watch of it was read."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="brokers")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    broker_id = models.BigIntegerField(default=0)
    address = models.CharField(max_length=NAME_CHARS_MAX)
    version = models.PositiveIntegerField(null=True, blank=True)
    boot = models.CharField(max_length=64, blank=True, default="")
    revision = models.BigIntegerField(default=0)
    # The scheduler as the broker reports it; driver "" when no driver holds the lease. Null on Apache's brokers.
    scheduler_driver = models.CharField(max_length=NAME_CHARS_MAX, null=True, blank=True)  # noqa: DJ001 - null is "unknown"
    scheduler_since = models.DateTimeField(null=True, blank=True)
    scheduler_late_ms = models.BigIntegerField(null=True, blank=True)
    scheduler_waiting_count = models.BigIntegerField(null=True, blank=True)
    # The same by kind of due things, as `remoting.wire.bodies.watch.SchedulerKind` has it: [{"kind", "next_due_ms",
    # "waiting_count", "late_ms"}].
    scheduler_kinds = models.JSONField(default=list, blank=True)
    last_error = models.TextField(blank=True, default="")
    seen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "name", "broker_id"], name="mq_broker_identity"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"

    @property
    def is_answering(self) -> bool:
        return self.seen_at is not None and not self.last_error

    @property
    def scheduler(self) -> SchedulerSummary | None:
        """What the broker says of its scheduler; None where it has none of ours."""
        if self.scheduler_driver is None:
            return None
        return SchedulerSummary(
            driver=self.scheduler_driver,
            since=self.scheduler_since,
            late_ms=self.scheduler_late_ms,
            waiting_count=self.scheduler_waiting_count,
            kinds=tuple(DueKind.of(kind) for kind in self.scheduler_kinds),
        )


class TopicKind(models.TextChoices):
    NORMAL = "normal", "normal"
    RETRY = "retry", "retry"
    DEAD_LETTER = "dead_letter", "dead letters"
    SYSTEM = "system", "system"


class Topic(models.Model):
    """Queue counts are sums over brokers. `message_count` counts what is stored now, `max_total` all ever sent."""

    # How many groups read it; set by selectors.
    group_count: int = 0

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="topics")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    kind = models.CharField(max_length=12, choices=TopicKind, default=TopicKind.NORMAL)
    read_queue_count = models.PositiveIntegerField(null=True, blank=True)
    write_queue_count = models.PositiveIntegerField(null=True, blank=True)
    perm = models.PositiveSmallIntegerField(null=True, blank=True)
    message_count = models.BigIntegerField(null=True, blank=True)
    max_total = models.BigIntegerField(null=True, blank=True)
    last_stored_at = models.DateTimeField(null=True, blank=True)
    in_per_s = models.FloatField(null=True, blank=True)
    # The total that `in_per_s` is counted from next time.
    rate_base_at = models.DateTimeField(null=True, blank=True)
    rate_base_total = models.BigIntegerField(null=True, blank=True)
    offsets_seen_at = models.DateTimeField(null=True, blank=True)
    # When time alone can change a figure of this row; null: never.
    due_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "name"], name="mq_topic_identity"),)
        indexes = (
            models.Index(fields=["cluster", "kind", "name"], name="mq_topic_by_kind"),
            models.Index(fields=["cluster", "due_at"], name="mq_topic_due", condition=models.Q(due_at__isnull=False)),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def messages_figure(self) -> Figure:
        return Figure(self.message_count, self.cluster.true_until(self.offsets_seen_at))

    @property
    def in_figure(self) -> Figure:
        return Figure(self.in_per_s, self.cluster.true_until(self.rate_base_at))


class TopicQueue(models.Model):
    """`max_history` is packed by `waiting.py`: when the max was seen to be what."""

    topic = models.ForeignKey(Topic, on_delete=models.CASCADE, related_name="queues")
    broker_name = models.CharField(max_length=NAME_CHARS_MAX)
    queue_id = models.PositiveIntegerField()
    min_offset = models.BigIntegerField()
    max_offset = models.BigIntegerField()
    max_history = models.BinaryField(default=bytes)
    last_stored_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["topic", "broker_name", "queue_id"], name="mq_topic_queue_identity"),
        )

    def __str__(self) -> str:
        return f"{self.topic} {self.broker_name} {self.queue_id}"

    @property
    def true_until(self) -> datetime | None:
        return self.topic.cluster.true_until(self.seen_at)


class Verdict(models.TextChoices):
    """Whether a group is all right. The rules are in `lag/verdicts.py`."""

    STALLED = "stalled", "STALLED"
    STOPPED = "stopped", "STOPPED"
    SLOW = "slow", "SLOW"
    UNKNOWN = "unknown", "UNKNOWN"
    OK = "ok", "OK"
    QUIET = "quiet", "QUIET"


# How urgent a verdict is, the most urgent first. Stored in rows: a new verdict takes a number between, none is changed.
VERDICT_RANKS = {
    Verdict.STALLED: 0,
    Verdict.STOPPED: 10,
    Verdict.SLOW: 20,
    Verdict.UNKNOWN: 30,
    Verdict.OK: 40,
    Verdict.QUIET: 50,
}
NEEDS_ATTENTION = (Verdict.STALLED, Verdict.STOPPED, Verdict.SLOW)


class WaitingMethod(models.TextChoices):
    """How it is known since when the next message has been waiting."""

    NONE = "", "nothing waits, or not known"
    STORE_TIME = "store_time", "store time of the next message"
    OBSERVED = "observed", "first observation that found it waiting"


class Group(models.Model):
    """A consumer group with the sums over its queues; null sums are not known.

    `behind_since`: since when the longest-waiting next message has been waiting, known by `behind_method`.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="groups")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    is_system = models.BooleanField(default=False)
    message_model = models.CharField(max_length=20, blank=True, default="")
    consume_type = models.CharField(max_length=20, blank=True, default="")
    consume_from_where = models.CharField(max_length=60, blank=True, default="")
    is_consume_enabled = models.BooleanField(null=True, blank=True)
    retry_times_max = models.IntegerField(null=True, blank=True)
    member_count = models.PositiveIntegerField(null=True, blank=True)
    members_seen_at = models.DateTimeField(null=True, blank=True)
    lag = models.BigIntegerField(null=True, blank=True)
    queue_count = models.PositiveIntegerField(null=True, blank=True)
    # Queues whose lag is not known; `lag` is the sum of the others.
    unknown_queue_count = models.PositiveIntegerField(null=True, blank=True)
    behind_since = models.DateTimeField(null=True, blank=True)
    behind_method = models.CharField(max_length=12, choices=WaitingMethod, blank=True, default="")
    moved_at = models.DateTimeField(null=True, blank=True)
    in_per_s = models.FloatField(null=True, blank=True)
    out_per_s = models.FloatField(null=True, blank=True)
    rate_base_at = models.DateTimeField(null=True, blank=True)
    rate_base_max = models.BigIntegerField(null=True, blank=True)
    rate_base_committed = models.BigIntegerField(null=True, blank=True)
    # Which queues those totals were summed over: totals over other queues cannot be compared with them.
    rate_base_queues = models.BigIntegerField(null=True, blank=True)
    offsets_seen_at = models.DateTimeField(null=True, blank=True)
    # Sums over the queues whose lag is known.
    max_total = models.BigIntegerField(null=True, blank=True)
    committed_total = models.BigIntegerField(null=True, blank=True)
    verdict = models.CharField(max_length=10, choices=Verdict, default=Verdict.UNKNOWN)
    # One of VERDICT_RANKS.
    verdict_rank = models.PositiveSmallIntegerField(default=VERDICT_RANKS[Verdict.UNKNOWN])
    verdict_since = models.DateTimeField(null=True, blank=True)
    # Which rule gave the verdict, and the numbers behind it (`lag/verdicts.py` makes words of them).
    verdict_rule = models.CharField(max_length=40, blank=True, default="")
    verdict_numbers = models.JSONField(default=dict, blank=True)
    # Counts up with every change of this group's rows; pages compare it.
    revision = models.PositiveBigIntegerField(default=0)
    # When time alone can change a figure or the verdict; null: never.
    due_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "name"], name="mq_group_identity"),)
        indexes = (
            # Of the lists of groups, which leave out RocketMQ's own.
            models.Index(
                fields=["cluster", "verdict_rank", "name"],
                name="mq_group_by_verdict_rank",
                condition=models.Q(is_system=False),
            ),
            NullsLastIndex(
                "cluster",
                largest_first("lag"),
                "name",
                name="mq_group_by_largest_lag",
                condition=models.Q(is_system=False),
            ),
            models.Index(fields=["cluster", "due_at"], name="mq_group_due", condition=models.Q(due_at__isnull=False)),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def lag_figure(self) -> Figure:
        return Figure(self.lag, self.cluster.true_until(self.offsets_seen_at))

    @property
    def in_figure(self) -> Figure:
        return Figure(self.in_per_s, self.cluster.true_until(self.rate_base_at))

    @property
    def out_figure(self) -> Figure:
        return Figure(self.out_per_s, self.cluster.true_until(self.rate_base_at))

    @property
    def members_figure(self) -> Figure:
        return Figure(self.member_count, self.cluster.true_until(self.members_seen_at))

    @property
    def behind(self) -> Behind:
        return Behind(self.behind_since, self.behind_method)

    @property
    def drain(self) -> Drain:
        return drain(self.lag, self.in_per_s, self.out_per_s)


class Member(models.Model):
    """A client of a group. `online_since` is the broker's word, null where it does not say; `left_at` null: online."""

    # Those that it was seen to pull last, each with its `end`; set by selectors.
    queues: Sequence[QueueOffset] = ()

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="members")
    client_id = models.CharField(max_length=CLIENT_ID_CHARS_MAX)
    address = models.CharField(max_length=100, blank=True, default="")
    language = models.CharField(max_length=20, blank=True, default="")
    version = models.IntegerField(null=True, blank=True)
    online_since = models.DateTimeField(null=True, blank=True)
    last_heartbeat_at = models.DateTimeField(null=True, blank=True)
    first_seen_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True, blank=True)
    # Where the broker saw it subscribe otherwise than other members of the group, as
    # `remoting.wire.bodies.watch.DifferenceState` has it.
    differences = models.JSONField(default=list, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["group", "client_id"], name="mq_member_identity"),)

    def __str__(self) -> str:
        return self.client_id

    @property
    def version_name(self) -> str:
        return version_name(self.version)

    @property
    def subscription_differences(self) -> list[SubscriptionDifference]:
        """Where it subscribes otherwise than other members of its group, or did."""
        return [SubscriptionDifference.of(difference) for difference in self.differences]


class Subscription(models.Model):
    """One member, topic and expression, with its time. `client_id` "" is the one table the broker keeps for the group.

    `ended_at` null: still in force. A changed expression ends one row and starts another, so the past stays.
    """

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="subscriptions")
    client_id = models.CharField(max_length=CLIENT_ID_CHARS_MAX, blank=True, default="")
    topic_name = models.CharField(max_length=NAME_CHARS_MAX)
    expression = models.TextField(default="*")
    expression_type = models.CharField(max_length=20, default="TAG")
    sub_version = models.BigIntegerField(default=0)
    first_seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        indexes = (models.Index(fields=["group", "ended_at"], name="mq_subscription_in_force"),)

    def __str__(self) -> str:
        return f"{self.client_id or 'group'}: {self.topic_name} {self.expression}"


class QueueOffset(models.Model):
    """Progress of a group on one queue.

    `owner`: the client that pulled it last; "" when none has, null when that is not known.
    `committed_since`: since when at least the committed offset has been what it is; `moved_at`: the same where it was
    seen to change, null before the first change seen. `behind_since`: since when the message at `committed_offset` has
    been waiting, null while that is not known or follows from the queue's end.

    How far the queue reaches belongs to the topic: `end` is the topic's row of it, set by `progress.attach_ends`.
    Without it neither lag nor max offset is known.
    """

    end: TopicQueue | None = None

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="queue_offsets")
    topic_name = models.CharField(max_length=NAME_CHARS_MAX)
    broker_name = models.CharField(max_length=NAME_CHARS_MAX)
    queue_id = models.PositiveIntegerField()
    committed_offset = models.BigIntegerField(null=True, blank=True)
    committed_since = models.DateTimeField(null=True, blank=True)
    behind_since = models.DateTimeField(null=True, blank=True)
    behind_method = models.CharField(max_length=12, choices=WaitingMethod, blank=True, default="")
    owner = models.CharField(max_length=CLIENT_ID_CHARS_MAX, null=True, blank=True)  # noqa: DJ001 - see above
    owner_since = models.DateTimeField(null=True, blank=True)
    last_pull_at = models.DateTimeField(null=True, blank=True)
    # False: the members do not subscribe to this topic any more, so it does not count as lag. Null: not known.
    is_subscribed = models.BooleanField(null=True, blank=True)
    moved_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["group", "topic_name", "broker_name", "queue_id"], name="mq_queue_offset_identity"
            ),
        )
        indexes = (models.Index(fields=["topic_name", "broker_name"], name="mq_queue_offset_by_topic"),)

    def __str__(self) -> str:
        return f"{self.group}: {self.topic_name} {self.broker_name} {self.queue_id}"

    @property
    def is_retry(self) -> bool:
        return is_retry_topic(self.topic_name)

    @property
    def true_until(self) -> datetime | None:
        return self.group.cluster.true_until(self.seen_at)

    @property
    def max_offset(self) -> int | None:
        """One past the last message of the queue."""
        return self.end.max_offset if self.end is not None else None

    @property
    def lag(self) -> int | None:
        """Messages between the committed offset and the end of the queue, None while one of them is not known.

        Never below 0: the two are read at different moments. Nobody is behind on a queue that never held a message.
        """
        if self.max_offset == 0:
            return 0
        if self.committed_offset is None or self.max_offset is None:
            return None
        return max(0, self.max_offset - self.committed_offset)

    @property
    def behind(self) -> Behind:
        """Since when the message at the committed offset has been waiting: a broker's word first, then observations."""
        if not self.lag or self.committed_offset is None or self.end is None:
            return Behind(None, WaitingMethod.NONE)
        if self.behind_since is not None:
            return Behind(self.behind_since, self.behind_method)
        if self.lag == 1 and self.end.last_stored_at is not None:
            return Behind(self.end.last_stored_at, WaitingMethod.STORE_TIME)
        since_s = waiting.waiting_since_s(self.end.max_history, self.committed_offset)
        if since_s is None:
            return Behind(None, WaitingMethod.NONE)
        return Behind(datetime.fromtimestamp(since_s, UTC), WaitingMethod.OBSERVED)
