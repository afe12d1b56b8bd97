"""Shapes of the map of flows."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.clusters.models import Verdict


class FlowSideSerializer(serializers.Serializer[Any]):
    """A retry topic, or one of dead letters."""

    topic = serializers.CharField()
    in_per_s = serializers.FloatField(allow_null=True)
    message_count = serializers.IntegerField(source="count", allow_null=True, help_text="Stored now.")


class GroupFlowSerializer(serializers.Serializer[Any]):
    """A group that reads the topic."""

    group = serializers.CharField(source="group.name")
    verdict = serializers.ChoiceField(source="group.verdict", choices=Verdict.choices)
    lag = serializers.IntegerField(allow_null=True, help_text="On this topic.")
    out_per_s = serializers.FloatField(allow_null=True, help_text="Of all topics that the group reads.")
    topic_count = serializers.IntegerField(help_text="How many topics the group reads.")
    retry = FlowSideSerializer(allow_null=True, help_text="Null: it has no such topic yet.")
    dead_letters = FlowSideSerializer(source="dead", allow_null=True, help_text="Null: it has no such topic yet.")


class TopicFlowSerializer(serializers.Serializer[Any]):
    """A topic with the groups that read it, the worst first."""

    topic = serializers.CharField(source="topic.name")
    in_per_s = serializers.FloatField(source="topic.in_per_s", allow_null=True)
    groups = GroupFlowSerializer(many=True)
    more_group_count = serializers.IntegerField(source="more_count", help_text="Groups that read it and are not here.")


class ProducerGroupSerializer(serializers.Serializer[Any]):
    """Clients of a producer group that were seen connected within a day."""

    group = serializers.CharField(source="name")
    client_count = serializers.IntegerField()
    seen_at = serializers.DateTimeField()


class FlowMapSerializer(serializers.Serializer[Any]):
    """Producers of the cluster, and topics with their readers. Brokers do not tell which topics a producer sends to."""

    producers = ProducerGroupSerializer(many=True)
    topics = TopicFlowSerializer(many=True)
    more_topic_count = serializers.IntegerField(source="more_count", help_text="Topics that fit and are not here.")
