"""The last hour of every group's lag (`history.py` packs it), and the hot window: what each queue was at each cycle.

The hot window is written by `sampling.py`, thinned by `retention.py`, read by `hot_window.py`; docs/LAG.md tells of it.
What a deleted group had that is not in the history yet is kept by `gone_groups.py`.
"""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster, Group

SPAN_NOTE_CHARS_MAX = 500


class LagHistory(models.Model):
    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="lag_history", primary_key=True)
    samples = models.BinaryField(default=bytes)
    # What of it died or was retried lately (`failing.py` packs it).
    failing = models.BinaryField(default=bytes)
    updated_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"lag of {self.group}"


class GroupSample(models.Model):
    """The queues of one topic of one group at a cycle in which something of them changed (`packing.py` packs them).

    What is not written is as it was, as far as a `SampledSpan` says that it was sampled. The first cycle of every hour
    and the first after a gap have all groups. The topic of dead letters has no committed offsets.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="samples", db_index=False)
    topic_name = models.CharField(max_length=NAME_CHARS_MAX)
    # Seconds since the epoch: rows of one cycle have the same.
    at_s = models.BigIntegerField()
    packed = models.BinaryField()

    class Meta:
        indexes = (
            models.Index(fields=["group", "at_s"], name="mq_sample_by_group"),
            models.Index(fields=["cluster", "at_s", "id"], name="mq_sample_by_time"),
        )

    def __str__(self) -> str:
        return f"{self.group} {self.topic_name} at {self.at_s}"


class GoneGroup(models.Model):
    """A group that was deleted while samples of it were not in the history yet: `group_id` was its number."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    group_id = models.BigIntegerField()
    name = models.CharField(max_length=NAME_CHARS_MAX)
    at_s = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.name}, gone at {self.at_s}"


class GoneSample(models.Model):
    """What a `GroupSample` of a gone group was."""

    gone = models.ForeignKey(GoneGroup, on_delete=models.CASCADE, related_name="samples")
    topic_name = models.CharField(max_length=NAME_CHARS_MAX)
    at_s = models.BigIntegerField()
    packed = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.gone} {self.topic_name} at {self.at_s}"


class SpanState(models.TextChoices):
    """How far what was sampled can be believed."""

    COMPLETE = "complete", "complete"
    PARTIAL = "partial", "some brokers did not answer"
    FAILED = "failed", "not sampled"


class SampledSpan(models.Model):
    """Cycles in a row that were alike: the first, the last, how many. Between spans nothing was sampled.

    `note`: what was wrong. `brokers`: those that did not answer, where it is partial. `seconds` and `row_count` are the
    last cycle's.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="sampled_spans", db_index=False)
    state = models.CharField(max_length=10, choices=SpanState)
    note = models.CharField(max_length=SPAN_NOTE_CHARS_MAX, blank=True, default="")
    brokers = models.JSONField(default=list, blank=True)
    since_s = models.BigIntegerField()
    until_s = models.BigIntegerField()
    cycle_count = models.PositiveIntegerField(default=1)
    seconds = models.FloatField(default=0)
    row_count = models.PositiveIntegerField(default=0)

    class Meta:
        indexes = (models.Index(fields=["cluster", "since_s"], name="mq_span_by_time"),)

    def __str__(self) -> str:
        return f"{self.cluster} {self.state} {self.since_s}-{self.until_s}"


class SamplingState(models.Model):
    """Where sampling a cluster stands: who works on it, what was written last of each group, how far it is thinned.

    `appended_until_s`: what is older is in the history; null: nobody ever appended any. `lost_until_s`: of what is not
    in it, all that is older was removed, since it had waited for too long (`retention.py`).
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="sampling", primary_key=True)
    # Until then one worker has the cycle; null: none has.
    claimed_until = models.DateTimeField(null=True, blank=True)
    sampled_at = models.DateTimeField(null=True, blank=True)
    # What was written last (`written.py` packs it).
    written = models.BinaryField(default=bytes)
    # What is older has one sample a minute.
    thinned_until_s = models.BigIntegerField(default=0)
    appended_until_s = models.BigIntegerField(null=True, blank=True)
    lost_until_s = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"sampling of {self.cluster}"
