"""Shapes of rules for dead letters."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.deadletter_rules.deciding import Does


class RuleSerializer(serializers.Serializer[Any]):
    """A rule about one failure, or about those of the group that match the patterns."""

    name = serializers.CharField(source="rule.name")
    group = serializers.CharField(source="rule.group_name")
    does = serializers.ChoiceField(choices=[(one.value, one.value) for one in Does], source="rule.does")
    failure = serializers.IntegerField(source="failure.pk", allow_null=True, default=None)
    failure_class = serializers.CharField(source="rule.class_pattern", help_text="* stands for any part; empty: any.")
    failure_text = serializers.CharField(source="rule.text_pattern", help_text="* stands for any part; empty: any.")
    after_minutes = serializers.IntegerField(source="rule.after_minutes")
    times = serializers.IntegerField(source="rule.times_max", help_text="How often a message is replayed at most.")
    rate = serializers.IntegerField(source="rule.rate_per_s", help_text="Messages a second.")
    from_hour = serializers.IntegerField(source="rule.from_hour")
    to_hour = serializers.IntegerField(source="rule.to_hour", help_text="The same as `from_hour`: all day.")
    acts_for = serializers.CharField(source="rule.acts_for")
    is_running = serializers.BooleanField(source="rule.is_running", help_text="False: it is paused.")
    last_at = serializers.DateTimeField(source="rule.last_at", allow_null=True, help_text="When it looked last.")
    last_words = serializers.CharField(source="rule.last_words")
    last_run = serializers.UUIDField(source="rule.last_run", allow_null=True)
