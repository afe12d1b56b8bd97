"""Members of a group, and what they subscribe to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import models

from mqadmin.clusters.figures import NEVER_TOLD, Figure, SubscriptionDifference
from mqadmin.clusters.models.cluster import NAME_CHARS_MAX
from mqadmin.clusters.models.group import Group
from mqadmin.clusters.versions import version_name

if TYPE_CHECKING:
    from mqadmin.clusters.models.queue_offset import QueueOffset

CLIENT_ID_CHARS_MAX = 255
ADDRESS_CHARS_MAX = 100
# A language, a kind of expression, a message model.
WORD_CHARS_MAX = 20
# As RocketMQ's constants are called, the longest of which has 47.
START_CHARS_MAX = 60


class Member(models.Model):
    """A client of a group. `online_since` is the broker's word, null where it does not say; `left_at` null: online."""

    # Those that it was seen to pull last, each with its `end`; set by selectors.
    queues: Sequence[QueueOffset] = ()
    # How far it is by its own word (`lag/broadcasting.py`); set by who shows it.
    own_lag: object = None
    # How much it has in flight, by its own word; set by whoever shows it.
    in_flight: Figure = NEVER_TOLD

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="members")
    client_id = models.CharField(max_length=CLIENT_ID_CHARS_MAX)
    address = models.CharField(max_length=ADDRESS_CHARS_MAX, blank=True, default="")
    language = models.CharField(max_length=WORD_CHARS_MAX, blank=True, default="")
    version = models.IntegerField(null=True, blank=True)
    # As its own heartbeats say, "" where only the broker's word of the whole group is known.
    message_model = models.CharField(max_length=WORD_CHARS_MAX, blank=True, default="")
    consume_from_where = models.CharField(max_length=START_CHARS_MAX, blank=True, default="")
    online_since = models.DateTimeField(null=True, blank=True)
    last_heartbeat_at = models.DateTimeField(null=True, blank=True)
    first_seen_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True, blank=True)
    # Where the broker saw it subscribe otherwise than other members of the group, as
    # `remoting.wire.bodies.watch.DifferenceState` has it.
    differences = models.JSONField(default=list, blank=True)
    # The brokers that are watched and say that it is online. Empty where polled.
    known_by = models.JSONField(default=list, blank=True)
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
        """Returns where it subscribes otherwise than other members of its group, or did."""
        return [SubscriptionDifference.of(difference) for difference in self.differences]


class Subscription(models.Model):
    """One member, topic and expression, with its time. `client_id` "" is the one table the broker keeps for the group.

    `ended_at` null: still in force. A changed expression ends one row and starts another, so the past stays.
    """

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="subscriptions")
    client_id = models.CharField(max_length=CLIENT_ID_CHARS_MAX, blank=True, default="")
    topic_name = models.CharField(max_length=NAME_CHARS_MAX)
    expression = models.TextField(default="*")
    expression_type = models.CharField(max_length=WORD_CHARS_MAX, default="TAG")
    sub_version = models.BigIntegerField(default=0)
    # The brokers that are watched and say so. Empty where polled.
    known_by = models.JSONField(default=list, blank=True)
    first_seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        indexes = (models.Index(fields=["group", "ended_at"], name="mq_subscription_in_force"),)

    def __str__(self) -> str:
        return f"{self.client_id or 'group'}: {self.topic_name} {self.expression}"
