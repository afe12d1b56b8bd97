"""Shape of the settings that brokers have of a topic or group."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.api.serializers.actions import ValuesField
from mqadmin.api.serializers.producers import BrokerFailureSerializer


class SettingsOfBrokerSerializer(serializers.Serializer[Any]):
    """What one broker has."""

    broker = serializers.CharField()
    settings = ValuesField()


class OnBrokersSerializer(serializers.Serializer[Any]):
    """The settings of a topic or group, broker by broker."""

    items = SettingsOfBrokerSerializer(many=True)
    differing = serializers.ListField(
        child=serializers.CharField(), help_text="Names of settings that brokers have differently."
    )
    failures = BrokerFailureSerializer(many=True)
