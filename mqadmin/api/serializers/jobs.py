"""Shapes of scheduled jobs."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.api.serializers.actions import DocumentField
from mqadmin.audit.models import Outcome


class LastRunSerializer(serializers.Serializer[Any]):
    """What became of a job the last time: its newest entry in the audit."""

    number = serializers.IntegerField()
    run = serializers.UUIDField()
    at = serializers.DateTimeField()
    outcome = serializers.ChoiceField(choices=Outcome.choices)
    reason = serializers.CharField(allow_blank=True)


class JobSerializer(serializers.Serializer[Any]):
    """An action that runs at its times, under an account."""

    name = serializers.CharField()
    action = serializers.CharField(allow_blank=True)
    cluster = serializers.CharField(allow_blank=True, help_text="Empty: it is about the installation.")
    identity = serializers.CharField(allow_blank=True, help_text="The account that it acts for.")
    arguments = DocumentField()
    schedule = serializers.CharField(help_text="Minute, hour, day, month, weekday in UTC; or an interval.")
    is_running = serializers.BooleanField(help_text="False: it is paused.")
    next_at = serializers.DateTimeField(allow_null=True)
    last_sent_at = serializers.DateTimeField(allow_null=True)
    last = LastRunSerializer(allow_null=True)
