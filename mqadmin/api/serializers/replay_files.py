"""Shapes of files that were sent to be replayed, and of their lines."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class ReplayFileSerializer(serializers.Serializer[Any]):
    """A file. `message_count` and `wrong_count` add up to `line_count`."""

    id = serializers.IntegerField(source="pk", help_text="The argument `file` of `start_replay`.")
    name = serializers.CharField()
    sha256 = serializers.CharField(source="digest")
    byte_count = serializers.IntegerField()
    line_count = serializers.IntegerField(help_text="Lines, or rows of CSV, that are not blank; without the first row.")
    message_count = serializers.IntegerField(help_text="Those that can be replayed.")
    wrong_count = serializers.IntegerField(help_text="The others; `…/lines?wrong=true` has the reasons.")
    sent_by = serializers.CharField()
    created_at = serializers.DateTimeField()


class GroupPartSerializer(serializers.Serializer[Any]):
    """What a file has of a group; "" has the lines that do not say whose they are."""

    group = serializers.CharField(source="group_name", allow_blank=True)
    message_count = serializers.IntegerField()
    changed_count = serializers.IntegerField(help_text="Of them, those that are not known to be as the index has them.")
    wrong_count = serializers.IntegerField()


class ReplayFileDetailSerializer(ReplayFileSerializer):
    """A file with what it has of each group."""

    groups = GroupPartSerializer(many=True)


class FileLineSerializer(serializers.Serializer[Any]):
    """A line of a file."""

    line = serializers.IntegerField(help_text="From 1; of a row of CSV over several lines the first.")
    problem = serializers.CharField(help_text="Why it cannot be replayed; empty where it can.")
    group = serializers.CharField(source="group_name", allow_blank=True)
    message_id = serializers.CharField(allow_blank=True)
    origin_topic = serializers.CharField(allow_blank=True)
    dead_letter = serializers.IntegerField(
        source="dead_letter_id", allow_null=True, help_text="The one that it is; null: none of the index."
    )
    is_changed = serializers.BooleanField(help_text="Not known to be as the index has it: it gets an id of its own.")
    has_body = serializers.BooleanField(help_text="False: the dead letter's own body is sent.")
    body_bytes = serializers.IntegerField()
