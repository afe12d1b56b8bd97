"""Shapes of topics."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.api.serializers.figures import BehindField, FigureField
from mqadmin.api.serializers.names import NamespaceField
from mqadmin.api.serializers.ownership import description_field, owner_field, runbook_field
from mqadmin.clusters.models import TopicKind, Verdict


class TopicSerializer(serializers.Serializer[Any]):
    """A topic; numbers of queues are sums over its brokers."""

    name = serializers.CharField()
    namespace = NamespaceField(source="name", help_text="The part of the name before the %; empty without one.")
    kind = serializers.ChoiceField(choices=TopicKind.choices)
    read_queue_count = serializers.IntegerField(allow_null=True)
    write_queue_count = serializers.IntegerField(allow_null=True)
    perm = serializers.IntegerField(allow_null=True, help_text="RocketMQ's number: 6 read and write, 4 read, 2 write.")
    messages = FigureField(source="messages_figure", help_text="Messages stored now.")
    in_per_s = FigureField(source="in_figure")
    last_stored_at = serializers.DateTimeField(allow_null=True)
    group_count = serializers.IntegerField(help_text="Groups that read it.")
    owner = owner_field()
    description = description_field()
    runbook = runbook_field()


class TopicQueueSerializer(serializers.Serializer[Any]):
    """A queue of a topic. Offsets are queue offsets: `max_offset` is the next to be written."""

    broker_name = serializers.CharField()
    queue_id = serializers.IntegerField()
    min_offset = serializers.IntegerField()
    max_offset = serializers.IntegerField()
    last_stored_at = serializers.DateTimeField(allow_null=True)
    seen_at = serializers.DateTimeField(source="true_until", allow_null=True)


class TopicReaderSerializer(serializers.Serializer[Any]):
    """A group that reads the topic; lag and waiting are those of this topic's queues alone."""

    group = serializers.CharField(source="group.name")
    verdict = serializers.ChoiceField(source="group.verdict", choices=Verdict.choices)
    lag = FigureField()
    behind = BehindField()


class TopicDetailSerializer(TopicSerializer):
    """A topic with its queues, and the first 100 groups that read it, the most urgent first."""

    queues = TopicQueueSerializer(many=True)
    readers = TopicReaderSerializer(many=True)
