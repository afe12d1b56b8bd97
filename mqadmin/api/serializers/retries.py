"""Shapes of retries: attempts that failed, and where the messages are now."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.api.serializers.failing import MomentField


class FailedAttemptSerializer(serializers.Serializer[Any]):
    """An attempt that failed; the broker keeps the message for the next one. What no member told is empty."""

    message_id = serializers.CharField(help_text="The sender's id, else the broker's.")
    origin_topic = serializers.CharField(help_text="The topic that it was first sent to.")
    tag = serializers.CharField()
    keys = serializers.SerializerMethodField()
    broker_name = serializers.CharField()
    attempt_count = serializers.IntegerField(help_text="Which attempt it was, from 1.")
    failed_at = serializers.DateTimeField()
    due_at = serializers.DateTimeField(allow_null=True, help_text="When the next attempt comes; null: not told.")
    failure_class = serializers.CharField(help_text="The class of the exception.")
    failure_text = serializers.CharField()
    failed_member = serializers.CharField()
    failed_listener = serializers.CharField()

    def get_keys(self, row: Any) -> list[str]:
        return str(row.keys).split()


class DueMessageSerializer(serializers.Serializer[Any]):
    """A message of the retry topic that the group has not consumed."""

    message_id = serializers.CharField(source="message.message_id")
    broker_name = serializers.CharField()
    queue_id = serializers.IntegerField(source="message.queue_id")
    queue_offset = serializers.IntegerField(source="message.queue_offset")
    failed_attempts = serializers.IntegerField(source="message.reconsume_times", help_text="So many have failed.")
    due_since = MomentField(source="message.store_timestamp_ms", allow_null=True)
    is_with_member = serializers.BooleanField(allow_null=True, help_text="Null: the broker does not tell.")


class RetriesStandingSerializer(serializers.Serializer[Any]):
    """Where the retries of a group stand: the first 64 of each queue that are due, and what waits for its time."""

    waiting_count = serializers.IntegerField(help_text="Messages that wait for their time.")
    next_due_at = serializers.DateTimeField(allow_null=True)
    due_count = serializers.IntegerField(help_text="Messages of the retry topic that are not consumed.")
    due = DueMessageSerializer(many=True)
    attempts_max = serializers.IntegerField(allow_null=True, help_text="Null: without end, or not known.")
    is_attempts_max_of_members = serializers.BooleanField(help_text="False: by the group's setting.")
    skipped_count = serializers.IntegerField(help_text="Delayed messages of the cluster that were passed over.")
    failures = serializers.DictField(child=serializers.CharField(), help_text="Address → why it did not answer.")
