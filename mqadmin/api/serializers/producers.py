"""Shape of a topic's producers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class ProducerSerializer(serializers.Serializer[Any]):
    """A client of a producer group that is connected."""

    group = serializers.CharField(allow_blank=True)
    client_id = serializers.CharField(allow_blank=True)
    address = serializers.CharField(allow_blank=True)
    language = serializers.CharField(allow_blank=True)
    version = serializers.CharField(source="version_name", allow_blank=True)
    heartbeat_at = serializers.DateTimeField(allow_null=True)
    brokers = serializers.ListField(child=serializers.CharField(), help_text="Those that it is connected to.")
    first_seen_at = serializers.DateTimeField(
        allow_null=True, help_text="When the console was first told of it; brokers do not know."
    )


class BrokerFailureSerializer(serializers.Serializer[Any]):
    """A broker that told nothing, and why."""

    broker = serializers.CharField()
    reason = serializers.CharField()


class ProducersSerializer(serializers.Serializer[Any]):
    """The first 500 producers, by group and client."""

    items = ProducerSerializer(many=True)
    total_count = serializers.IntegerField()
    broker_count = serializers.IntegerField(help_text="Brokers that were asked.")
    failures = BrokerFailureSerializer(many=True)
