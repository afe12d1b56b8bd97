"""What is known of every cluster: brokers, topics, groups, members, subscriptions, offsets.

Written by the synchroniser alone (and the name and address of a cluster by actions). A fact that is not known is null,
never 0; `seen_at` says when a broker last said it. Times are those of the broker that told them where it tells one.
Offsets are queue offsets: the next to read, or to be written.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

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


class Cluster(models.Model):
    """`namesrv` is "host:port;host:port"; `rocketmq_name` what its brokers call it."""

    name = models.SlugField(unique=True, max_length=100)
    namesrv = models.CharField(max_length=1000)
    rocketmq_name = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    kind = models.CharField(max_length=10, choices=ClusterKind, blank=True, default=ClusterKind.UNKNOWN)
    state = models.CharField(max_length=12, choices=ClusterState, default=ClusterState.NEW)
    state_since = models.DateTimeField(default=timezone.now)
    last_tried_at = models.DateTimeField(null=True, blank=True)
    last_synced_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True, default="")
    # How many requests the last polling cycle cost; null where facts come by watch.
    cycle_request_count = models.PositiveIntegerField(null=True, blank=True)
    # Where polling in turn goes on: the last topic and the last group asked.
    topic_cursor = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    group_cursor = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    # The last hour of the sum of all groups' lag (`lag/history.py` packs it).
    lag_history = models.BinaryField(default=bytes)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class FollowLease(models.Model):
    """Who keeps a cluster's rows true. Taken by conditional update; expires unless its holder says otherwise.

    `worker` is the Celery node name, so that a worker that shuts down can tell its children through `stop_asked`.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="follow_lease")
    holder = models.UUIDField(default=uuid.uuid4)
    worker = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    expires_at = models.DateTimeField()
    taken_at = models.DateTimeField(default=timezone.now)
    stop_asked = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.cluster} followed by {self.worker or self.holder}"


class Broker(models.Model):
    """`broker_id` 0 is a master. `boot` and `revision` say how far the watch of it was read."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="brokers")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    broker_id = models.BigIntegerField(default=0)
    address = models.CharField(max_length=NAME_CHARS_MAX)
    version = models.PositiveIntegerField(null=True, blank=True)
    boot = models.CharField(max_length=64, blank=True, default="")
    revision = models.BigIntegerField(default=0)
    # The scheduler as the broker sees it; driver "" when nobody drives. Null where the broker has none of ours.
    scheduler_driver = models.CharField(max_length=NAME_CHARS_MAX, null=True, blank=True)  # noqa: DJ001 - null is "unknown"
    scheduler_since = models.DateTimeField(null=True, blank=True)
    scheduler_late_ms = models.BigIntegerField(null=True, blank=True)
    scheduler_waiting_count = models.BigIntegerField(null=True, blank=True)
    last_error = models.TextField(blank=True, default="")
    seen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "name", "broker_id"], name="mq_broker_identity"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"


class TopicKind(models.TextChoices):
    NORMAL = "normal", "normal"
    RETRY = "retry", "retry"
    DEAD_LETTER = "dead_letter", "dead letters"
    SYSTEM = "system", "system"


class Topic(models.Model):
    """Queue counts are sums over brokers. `message_count` counts what is stored now, `max_total` all ever sent."""

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
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "name"], name="mq_topic_identity"),)
        indexes = (models.Index(fields=["cluster", "kind", "name"], name="mq_topic_by_kind"),)

    def __str__(self) -> str:
        return self.name


class TopicQueue(models.Model):
    """`max_history` is packed by `lag/waiting.py`: when the max was seen to be what."""

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


class Verdict(models.TextChoices):
    """In the order in which they need somebody. The rules are in `lag/verdicts.py`."""

    STALLED = "stalled", "STALLED"
    STOPPED = "stopped", "STOPPED"
    SLOW = "slow", "SLOW"
    UNKNOWN = "unknown", "UNKNOWN"
    OK = "ok", "OK"
    QUIET = "quiet", "QUIET"


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
    verdict = models.CharField(max_length=10, choices=Verdict, default=Verdict.UNKNOWN)
    # Sorts as `Verdict` is declared: what needs somebody first.
    verdict_rank = models.PositiveSmallIntegerField(default=3)
    verdict_since = models.DateTimeField(null=True, blank=True)
    # Which rule gave the verdict, and the numbers behind it (`lag/verdicts.py` makes words of them).
    verdict_rule = models.CharField(max_length=40, blank=True, default="")
    verdict_facts = models.JSONField(default=dict, blank=True)
    # Counts up with every change of this group's rows; pages compare it.
    revision = models.PositiveBigIntegerField(default=0)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "name"], name="mq_group_identity"),)
        indexes = (
            models.Index(fields=["cluster", "is_system", "verdict_rank", "name"], name="mq_group_by_verdict"),
            models.Index(fields=["cluster", "is_system", "lag"], name="mq_group_by_lag"),
        )

    def __str__(self) -> str:
        return self.name


class Member(models.Model):
    """A client of a group. `online_since` is the broker's word, null where it does not say; `left_at` null: online."""

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="members")
    client_id = models.CharField(max_length=CLIENT_ID_CHARS_MAX)
    address = models.CharField(max_length=100, blank=True, default="")
    language = models.CharField(max_length=20, blank=True, default="")
    version = models.IntegerField(null=True, blank=True)
    online_since = models.DateTimeField(null=True, blank=True)
    last_heartbeat_at = models.DateTimeField(null=True, blank=True)
    first_seen_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["group", "client_id"], name="mq_member_identity"),)

    def __str__(self) -> str:
        return self.client_id


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

    `owner`: the client that was seen to pull it last; "" when nobody was, null when that is not known.
    `committed_since`: since when at least the committed offset has been what it is; `moved_at`: the same where it was
    seen to change, null before the first change seen.
    """

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="queue_offsets")
    topic_name = models.CharField(max_length=NAME_CHARS_MAX)
    broker_name = models.CharField(max_length=NAME_CHARS_MAX)
    queue_id = models.PositiveIntegerField()
    committed_offset = models.BigIntegerField(null=True, blank=True)
    max_offset = models.BigIntegerField(null=True, blank=True)
    committed_since = models.DateTimeField(null=True, blank=True)
    lag = models.BigIntegerField(null=True, blank=True)
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
