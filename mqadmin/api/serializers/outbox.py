"""Shape of the outbox's messages."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from consumer.outbox.models import OutboxState


class OutboxMessageSerializer(serializers.Serializer[Any]):
    """A message that was written with a database transaction."""

    message_id = serializers.CharField(help_text="Its unique key, the same with every attempt.")
    state = serializers.ChoiceField(choices=OutboxState.choices)
    cluster = serializers.CharField(help_text="As MQADMIN_CLUSTERS names it; empty: the one behind MQADMIN_NAMESRV.")
    topic = serializers.CharField()
    order_key = serializers.CharField()
    attempts = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    next_attempt_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True, help_text="When it was sent or given up.")
    last_error = serializers.CharField(help_text="Why it was not sent the last time; empty: it was, or was not tried.")
