"""Consumer groups of a cluster: settings, sums over their queues, and the verdict."""

from __future__ import annotations

from datetime import datetime

from django.db import models

from mqadmin.clusters.figures import Behind, Drain, Figure, drain, stored_pace
from mqadmin.clusters.models.cluster import NAME_CHARS_MAX, POLLED_KINDS, Cluster, ClusterState
from mqadmin.clusters.ordering import NullsLastIndex, largest_first


class Verdict(models.TextChoices):
    """Whether a group is all right. The rules are in `lag/verdicts.py`."""

    STALLED = "stalled", "STALLED"
    STOPPED = "stopped", "STOPPED"
    FAILING = "failing", "FAILING"
    SLOW = "slow", "SLOW"
    REWOUND = "rewound", "REWOUND"
    BUSY = "busy", "BUSY"
    UNKNOWN = "unknown", "UNKNOWN"
    OK = "ok", "OK"
    QUIET = "quiet", "QUIET"


# How urgent a verdict is, the most urgent first. Stored in rows: a new verdict takes a number between, none is changed.
VERDICT_RANKS = {
    Verdict.STALLED: 0,
    Verdict.STOPPED: 10,
    Verdict.FAILING: 15,
    Verdict.SLOW: 20,
    Verdict.REWOUND: 25,
    Verdict.BUSY: 27,
    Verdict.UNKNOWN: 30,
    Verdict.OK: 40,
    Verdict.QUIET: 50,
}
# As RocketMQ writes it: each member gets all messages, and keeps its own offsets.
BROADCASTING = "BROADCASTING"
NEEDS_ATTENTION = (Verdict.STALLED, Verdict.STOPPED, Verdict.FAILING, Verdict.SLOW)


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
    # What each broker that is watched has of it: name → [is_consume_enabled, retry_times_max]. Empty where polled.
    of_brokers = models.JSONField(default=dict, blank=True)
    # Of a polled cluster: digest of what the brokers said is committed, when the rows said the same; 0: not known.
    committed_digest = models.BigIntegerField(default=0)
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
    # How many messages a second its lag loses, by the samples of five minutes, and how far that can be relied on
    # (`lag/draining.py`); null: they are too few.
    drains_per_s = models.FloatField(null=True, blank=True)
    drain_confidence = models.CharField(max_length=12, blank=True, default="")
    # How many of its messages died, and how many came to be retried, in the last ten minutes (`lag/failing.py`).
    died_lately = models.PositiveBigIntegerField(null=True, blank=True)
    retried_lately = models.PositiveBigIntegerField(null=True, blank=True)
    verdict = models.CharField(max_length=10, choices=Verdict, default=Verdict.UNKNOWN)
    # One of VERDICT_RANKS.
    verdict_rank = models.PositiveSmallIntegerField(default=VERDICT_RANKS[Verdict.UNKNOWN])
    verdict_since = models.DateTimeField(null=True, blank=True)
    # Which rule gave the verdict, and the numbers behind it (`lag/verdicts.py` makes words of them).
    verdict_rule = models.CharField(max_length=40, blank=True, default="")
    verdict_numbers = models.JSONField(default=dict, blank=True)
    # Since when the rules would say OK, while the verdict is still one that somebody should look at.
    calm_since = models.DateTimeField(null=True, blank=True)
    # What is allowed (`objectives/`): for how long a message may wait, how many may (null: any number), who said so.
    allowed_lag_s = models.PositiveIntegerField(null=True, blank=True)
    allowed_lag = models.BigIntegerField(null=True, blank=True)
    objective_of = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    # Since when it has been beyond that; null: it is not (`lag/measuring.py`).
    beyond_objective_since = models.DateTimeField(null=True, blank=True)
    # Counts up with every change of this group's rows; pages compare it.
    revision = models.PositiveBigIntegerField(default=0)
    # When somebody last looked at its page (`clusters/looking.py`).
    looked_at = models.DateTimeField(null=True, blank=True)
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
        return Figure(self.lag, self._true_until(self.offsets_seen_at))

    @property
    def in_figure(self) -> Figure:
        return Figure(self.in_per_s, self._true_until(self.rate_base_at))

    @property
    def out_figure(self) -> Figure:
        return Figure(self.out_per_s, self._true_until(self.rate_base_at))

    @property
    def members_figure(self) -> Figure:
        return Figure(self.member_count, self.cluster.true_until(self.members_seen_at, self.of_brokers))

    @property
    def behind(self) -> Behind:
        return Behind(self.behind_since, self.behind_method, self.sampled_until)

    @property
    def sampled_until(self) -> datetime | None:
        """Returns the sample that its figures are of, where the cluster is polled and all brokers answer; else None.

        Those of a broadcasting group are what a member said, wherever.
        """
        is_polled = self.cluster.kind in POLLED_KINDS and self.cluster.state == ClusterState.REACHABLE
        is_sampled = is_polled or self.message_model == BROADCASTING
        return self.offsets_seen_at if is_sampled else None

    def _true_until(self, seen_at: datetime | None) -> datetime | None:
        if self.message_model == BROADCASTING:
            return seen_at
        return self.cluster.true_until(seen_at, self.of_brokers)

    def is_within_objective(self, now: datetime, share: float = 1.0) -> bool | None:
        """Tells whether no message waits longer, and no more wait, than `share` of what is allowed; None: not known."""
        if self.lag is None or self.allowed_lag_s is None:
            return None
        if self.allowed_lag is not None and self.lag > self.allowed_lag * share:
            return False
        if self.behind_since is None:
            return True
        return (self.behind.seen_until(now) - self.behind_since).total_seconds() <= self.allowed_lag_s * share

    @property
    def drain(self) -> Drain:
        return drain(self.lag, self.in_per_s, self.out_per_s, stored_pace(self.drains_per_s, self.drain_confidence))
