"""Shapes of clusters and brokers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mqadmin.api.serializers.figures import FigureField
from mqadmin.brokers.settings import BrokerSetting
from mqadmin.clusters.cluster_reasons import cluster_reason
from mqadmin.clusters.cluster_verdict import FINDINGS, ClusterVerdict
from mqadmin.clusters.models import Broker, ClusterKind, ClusterState
from mqadmin.clusters.selectors import ClusterCard
from mqadmin.clusters.versions import version_name


class ClusterFindingSerializer(serializers.Serializer[Any]):
    """What is not all right in a cluster, and of how many groups, brokers or schedulers."""

    verdict = serializers.ChoiceField(choices=[one.value for one in FINDINGS])
    count = serializers.IntegerField()


class ClusterSerializer(serializers.Serializer[Any]):
    """A cluster with the sums over what is in it, from a `ClusterCard`."""

    name = serializers.CharField(source="head.name")
    namesrv = serializers.CharField(source="head.namesrv", help_text="Its name servers: host:port;host:port.")
    note = serializers.CharField(source="head.note", allow_blank=True, help_text="What people noted of it.")
    rocketmq_name = serializers.CharField(source="head.rocketmq_name", help_text="What its brokers call it.")
    kind = serializers.ChoiceField(source="head.kind", choices=ClusterKind.choices)
    state = serializers.ChoiceField(source="head.state", choices=ClusterState.choices)
    state_since = serializers.DateTimeField(source="head.state_since")
    verdict = serializers.ChoiceField(
        source="judgement.verdict",
        choices=[one.value for one in ClusterVerdict],
        help_text="The worst of its groups, brokers and schedulers.",
    )
    findings = ClusterFindingSerializer(
        source="judgement.findings", many=True, help_text="What somebody should look at, the worst first."
    )
    reason = serializers.SerializerMethodField(help_text="The same in words.")
    observed_until = serializers.DateTimeField(
        source="head.observed_until", allow_null=True, help_text="Until when its figures are true."
    )
    last_error = serializers.CharField(source="head.last_error", allow_blank=True)
    broker_count = serializers.IntegerField()
    answering_broker_count = serializers.IntegerField()
    topic_count = serializers.IntegerField(help_text="Without those of RocketMQ itself.")
    group_count = serializers.IntegerField(help_text="Without those of RocketMQ itself.")
    attention_count = serializers.IntegerField(help_text="Groups that are stalled, stopped, failing or slow.")
    lag = FigureField()
    in_per_s = FigureField()
    out_per_s = FigureField()

    def get_reason(self, card: ClusterCard) -> str:
        return cluster_reason(card.judgement)


class DueKindSerializer(serializers.Serializer[Any]):
    """One kind of things that come at their time on one of our brokers."""

    kind = serializers.CharField(help_text="delay, timer, transaction or retention")
    next_due_at = serializers.DateTimeField(allow_null=True)
    waiting_count = serializers.IntegerField()
    late_ms = serializers.IntegerField(allow_null=True)


class SchedulerSerializer(serializers.Serializer[Any]):
    """The scheduler of one of our brokers."""

    driver = serializers.CharField(allow_blank=True, help_text="Who drives it; empty: nobody does.")
    since = serializers.DateTimeField(allow_null=True)
    late_ms = serializers.IntegerField(allow_null=True)
    waiting_count = serializers.IntegerField(allow_null=True)
    kinds = DueKindSerializer(many=True)


class BrokerSerializer(serializers.Serializer[Any]):
    """A broker; `scheduler` null on Apache's."""

    name = serializers.CharField()
    broker_id = serializers.IntegerField(help_text="0 is a master.")
    address = serializers.CharField()
    version = serializers.SerializerMethodField(help_text="Empty where it is not known.")
    is_answering = serializers.BooleanField()
    last_error = serializers.CharField(allow_blank=True)
    seen_at = serializers.DateTimeField(allow_null=True)
    scheduler = SchedulerSerializer(allow_null=True)

    def get_version(self, broker: Broker) -> str:
        return version_name(broker.version)


class BrokerRunSerializer(serializers.Serializer[Any]):
    """What a broker told of its run."""

    put_per_s = FigureField(help_text="Messages stored a second, over the last minute.")
    get_per_s = FigureField(help_text="Messages given out a second, over the last minute.")
    figures = serializers.DictField(
        child=serializers.CharField(allow_blank=True), help_text="By RocketMQ's names; none where it told nothing yet."
    )


class BrokerWithRunSerializer(BrokerSerializer, BrokerRunSerializer):
    """A master or slave with what it told of its run."""


class BrokerDetailSerializer(serializers.Serializer[Any]):
    """The master of a name, and its slaves."""

    name = serializers.CharField()
    items = BrokerWithRunSerializer(many=True)


class SettingSerializer(serializers.Serializer[Any]):
    """A setting of a broker beside its default."""

    name = serializers.CharField()
    value = serializers.SerializerMethodField("shown_value", help_text="Null: it holds a password, and is not shown.")
    default = serializers.CharField(allow_null=True, allow_blank=True, help_text="Null: not known.")
    is_changed = serializers.BooleanField(help_text="It is known to differ from its default.")
    is_own = serializers.BooleanField(help_text="Each broker has its own.")
    is_by_processors = serializers.BooleanField(help_text="It depends on the machine.")

    @extend_schema_field({"type": ["string", "null"]})
    def shown_value(self, setting: BrokerSetting) -> str | None:
        return None if setting.is_secret else setting.value
