"""Progress of groups on queues."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db import models

from mqadmin.clusters import figures
from mqadmin.clusters.figures import NEVER_TOLD, Behind, Figure
from mqadmin.clusters.models.cluster import NAME_CHARS_MAX
from mqadmin.clusters.models.group import Group, WaitingMethod
from mqadmin.clusters.models.member import CLIENT_ID_CHARS_MAX
from mqadmin.clusters.models.topic import TopicQueue
from remoting.wire.names import is_retry_topic


class QueueOffset(models.Model):
    """Progress of a group on one queue.

    `owner`: the client that pulled it last; "" when none has, null when that is not known.
    `committed_since`: since when at least the committed offset has been what it is; `moved_at`: the same where it was
    seen to change, null before the first change seen. `behind_since`: since when the message at `committed_offset` has
    been waiting, null while that is not known or follows from the queue's end. `rewound_from`: where the committed
    offset was before it was moved back; null when it has never been, or has come there again.

    How far the queue reaches belongs to the topic: `end` is the topic's row of it, set by `progress.attach_ends`.
    Without it neither lag nor max offset is known.
    """

    end: TopicQueue | None = None
    # How much of it is in flight, by its member's word; set by whoever shows it.
    in_flight: Figure = NEVER_TOLD

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="queue_offsets")
    topic_name = models.CharField(max_length=NAME_CHARS_MAX)
    broker_name = models.CharField(max_length=NAME_CHARS_MAX)
    queue_id = models.PositiveIntegerField()
    committed_offset = models.BigIntegerField(null=True, blank=True)
    committed_since = models.DateTimeField(null=True, blank=True)
    behind_since = models.DateTimeField(null=True, blank=True)
    behind_method = models.CharField(max_length=12, choices=WaitingMethod, blank=True, default="")
    rewound_from = models.BigIntegerField(null=True, blank=True)
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
        return self.group.cluster.true_until(self.seen_at, (self.broker_name,))

    @property
    def max_offset(self) -> int | None:
        """Returns the queue offset after the last message of the queue."""
        return self.end.max_offset if self.end is not None else None

    @property
    def lag(self) -> int | None:
        """Returns how many messages lie between committed offset and queue end, None while one of them is not known."""
        return figures.lag(self.committed_offset, self.max_offset)

    @property
    def behind(self) -> Behind:
        """Returns since when the message at the committed offset has been waiting: the broker's time, else ours."""
        if self.end is None:
            return figures.NOT_BEHIND
        told = Behind(self.behind_since, self.behind_method)
        found = figures.behind(self.lag, self.committed_offset, told, self.end.max_history, self.end.last_stored_at)
        if self.group_id is None or self.group.sampled_until is None:
            return found
        return replace(found, until=self.end.seen_at)
