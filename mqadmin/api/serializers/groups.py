"""Shapes of consumer groups, their members, queues, subscriptions, rebalances and lag."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from mqadmin.api.serializers.figures import BehindField, DrainField, FigureField
from mqadmin.api.serializers.names import NamespaceField
from mqadmin.api.serializers.ownership import description_field, owner_field, runbook_field
from mqadmin.clusters.models import Group, Verdict
from mqadmin.lag.hot_window import Gap
from mqadmin.rebalances.churn import Restlessness
from mqadmin.rebalances.models import RebalanceKind, RebalanceSource


class GroupSerializer(serializers.Serializer[Any]):
    """A consumer group with the sums over its queues."""

    name = serializers.CharField()
    namespace = NamespaceField(source="name", help_text="The part of the name before the %; empty without one.")
    verdict = serializers.ChoiceField(choices=Verdict.choices)
    verdict_since = serializers.DateTimeField(allow_null=True)
    verdict_rule = serializers.CharField(allow_blank=True, help_text="The rule that gave the verdict.")
    verdict_numbers = serializers.DictField(help_text="The numbers behind the verdict.")
    allowed_lag_s = serializers.IntegerField(
        allow_null=True, help_text="How long the next message may wait: the objective."
    )
    allowed_lag = serializers.IntegerField(allow_null=True, help_text="How many may wait; null: any number.")
    objective_of = serializers.CharField(
        allow_blank=True, help_text="The name or pattern that the objective was set for; empty: what ships."
    )
    is_within_objective = serializers.SerializerMethodField(help_text="Null: not known.")
    lag = FigureField(source="lag_figure")
    unknown_queue_count = serializers.IntegerField(
        allow_null=True, help_text="Queues whose lag is not known: `lag` is the sum of the others."
    )
    queue_count = serializers.IntegerField(allow_null=True)
    behind = BehindField()
    in_per_s = FigureField(source="in_figure")
    out_per_s = FigureField(source="out_figure")
    drain = DrainField()
    died_lately = serializers.IntegerField(
        allow_null=True, help_text="Dead letters of the last ten minutes; null: not known."
    )
    retried_lately = serializers.IntegerField(
        allow_null=True, help_text="Messages that came to be retried in the last ten minutes; null: not known."
    )
    members = FigureField(source="members_figure")
    message_model = serializers.CharField(allow_blank=True)
    is_consume_enabled = serializers.BooleanField(allow_null=True)
    retry_times_max = serializers.IntegerField(allow_null=True)
    owner = owner_field()
    description = description_field()
    runbook = runbook_field()

    def get_is_within_objective(self, group: Group) -> bool | None:
        return group.is_within_objective(timezone.now())


class GroupDetailSerializer(GroupSerializer):
    """A consumer group with its settings."""

    consume_type = serializers.CharField(allow_blank=True)
    consume_from_where = serializers.CharField(allow_blank=True)
    is_system = serializers.BooleanField()
    moved_at = serializers.DateTimeField(allow_null=True, help_text="When a committed offset was last seen to move.")


class GroupQueueSerializer(serializers.Serializer[Any]):
    """Progress of a group on one queue. Offsets are queue offsets: the next to read, the next to be written."""

    topic = serializers.CharField(source="topic_name")
    broker_name = serializers.CharField()
    queue_id = serializers.IntegerField()
    committed_offset = serializers.IntegerField(allow_null=True)
    max_offset = serializers.IntegerField(allow_null=True)
    lag = serializers.IntegerField(allow_null=True)
    in_flight = FigureField(
        help_text="Of the lag, what its member has pulled and not finished, by the member's own word."
    )
    behind = BehindField()
    owner = serializers.CharField(allow_null=True, allow_blank=True, help_text="Empty: nobody; null: not known.")
    owner_since = serializers.DateTimeField(allow_null=True)
    last_pull_at = serializers.DateTimeField(allow_null=True)
    moved_at = serializers.DateTimeField(allow_null=True)
    is_subscribed = serializers.BooleanField(
        allow_null=True, help_text="False: no member subscribes to the topic any more, and it is no lag."
    )
    seen_at = serializers.DateTimeField(source="true_until", allow_null=True)


class DifferenceSerializer(serializers.Serializer[Any]):
    """Where a member subscribes otherwise than others of its group."""

    topic = serializers.CharField()
    expression = serializers.CharField(allow_null=True, help_text="Null: it does not subscribe.")
    expression_type = serializers.CharField(allow_null=True)
    sub_version = serializers.IntegerField()
    since = serializers.DateTimeField(allow_null=True)
    last_seen_at = serializers.DateTimeField(allow_null=True)
    is_over = serializers.BooleanField()
    others = serializers.ListField(child=serializers.CharField(), help_text="Some members that differ from it now.")


class MemberLagSerializer(serializers.Serializer[Any]):
    """How far a member of a broadcasting group was when it answered."""

    lag = serializers.IntegerField(allow_null=True, help_text="Over the queues of which it is known.")
    queue_count = serializers.IntegerField()
    unknown_queue_count = serializers.IntegerField()
    behind_since = serializers.DateTimeField(
        allow_null=True, help_text="Since when its longest-waiting next message has been waiting, at least."
    )
    told_at = serializers.DateTimeField()


class MemberSerializer(serializers.Serializer[Any]):
    """A client of a group: online while `left_at` is null."""

    client_id = serializers.CharField()
    address = serializers.CharField(allow_blank=True)
    language = serializers.CharField(allow_blank=True)
    version = serializers.CharField(source="version_name", allow_blank=True)
    online_since = serializers.DateTimeField(allow_null=True)
    last_heartbeat_at = serializers.DateTimeField(allow_null=True)
    first_seen_at = serializers.DateTimeField()
    left_at = serializers.DateTimeField(allow_null=True)
    queue_count = serializers.SerializerMethodField(help_text="Queues that it was seen to pull last.")
    in_flight = FigureField(help_text="Messages that it has pulled and not finished, over its queues, by its own word.")
    differences = DifferenceSerializer(many=True, source="subscription_differences")
    own_lag = MemberLagSerializer(
        allow_null=True, help_text="How far it is by its own word, where the group broadcasts; else null."
    )

    def get_queue_count(self, member: Any) -> int:
        return len(member.queues)


class SubscriptionSerializer(serializers.Serializer[Any]):
    """A subscription in force; `client_id` empty is the one table that the broker keeps for the group."""

    client_id = serializers.CharField(allow_blank=True)
    topic = serializers.CharField(source="topic_name")
    expression = serializers.CharField(allow_blank=True)
    expression_type = serializers.CharField(allow_blank=True)
    sub_version = serializers.IntegerField()
    first_seen_at = serializers.DateTimeField()
    seen_at = serializers.DateTimeField()


class RebalanceSerializer(serializers.Serializer[Any]):
    """An observed fact: a member that came or went, queues that moved, an instance of ours that started or ended.

    `details` are what its kind needs; of queues that moved also `pause`: for how long consumption stood, in bounds.
    """

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    group = serializers.CharField(source="group_name")
    kind = serializers.ChoiceField(choices=RebalanceKind.choices)
    client_id = serializers.CharField(allow_blank=True)
    details = serializers.DictField()
    source = serializers.ChoiceField(choices=RebalanceSource.choices)  # type: ignore[assignment]


class TallySerializer(serializers.Serializer[Any]):
    """What happens within a minute of the event before is one rebalance, and weighs as the heaviest of its events."""

    rebalance_count = serializers.IntegerField()
    lost_count = serializers.IntegerField(help_text="Members that were lost.")
    score = serializers.IntegerField(
        help_text="Sum of weights: 3 where a member was lost, 2 where a subscription changed, else 1."
    )


class ChurnSerializer(serializers.Serializer[Any]):
    """How restless a group is."""

    restlessness = serializers.ChoiceField(
        choices=[one.value for one in Restlessness],
        help_text="churning: a score of 12 in the hour or 96 in the day; restless: 5 or 24.",
    )
    hour = TallySerializer(help_text="The last hour.")
    day = TallySerializer(help_text="The last 24 hours.")


class GapSerializer(serializers.Serializer[Any]):
    """A time in which a cluster was not sampled: what happened then may be missing."""

    since = serializers.SerializerMethodField()
    until = serializers.SerializerMethodField()
    state = serializers.ChoiceField(
        choices=["late", "failed", "partial"],
        help_text="late: nothing was sampled; failed: nothing could be; partial: some brokers did not answer.",
    )
    note = serializers.CharField(allow_blank=True)

    def get_since(self, gap: Gap) -> datetime:
        return datetime.fromtimestamp(gap.at_s, UTC)

    def get_until(self, gap: Gap) -> datetime:
        return datetime.fromtimestamp(gap.until_s, UTC)


class CurvePointSerializer(serializers.Serializer[Any]):
    """What held at `at`; null: not known, as where nothing was sampled."""

    at = serializers.DateTimeField()
    lag = serializers.IntegerField(allow_null=True)
    in_per_s = serializers.FloatField(allow_null=True, help_text="Messages produced a second since the point before.")
    out_per_s = serializers.FloatField(allow_null=True, help_text="Messages consumed a second since the point before.")
    waiting_s = serializers.FloatField(
        allow_null=True, help_text="How long the longest-waiting next message had been waiting, at least."
    )
    dead = serializers.IntegerField(allow_null=True, help_text="Dead letters in all.")


class LagPointSerializer(serializers.Serializer[Any]):
    """From `at` on the lag was this; null: not known."""

    at = serializers.DateTimeField()
    lag = serializers.IntegerField(allow_null=True)
