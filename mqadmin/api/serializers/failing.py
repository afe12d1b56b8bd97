"""Shapes of failures of a group whose messages are not dead yet."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.clusters.moments import moment_or_none


class MessageFailureSerializer(serializers.Serializer[Any]):
    """The latest failure of a message, as this project's consumer keeps it."""

    message_id = serializers.CharField(help_text="The sender's unique key.")
    topic = serializers.CharField()
    exception = serializers.CharField(help_text="The class of the exception.")
    text = serializers.CharField(help_text="The first line of its text.")
    listener = serializers.CharField()
    member = serializers.CharField()
    attempt = serializers.IntegerField(help_text="Which attempt it was, from 1.")
    failed_at = serializers.DateTimeField()


class MomentField(serializers.DateTimeField):
    """A moment that a client told in ms since the epoch; null where that is none."""

    def to_representation(self, value: Any) -> Any:
        moment = moment_or_none(value)
        return super().to_representation(moment) if moment is not None else None


class LatestFailureSerializer(serializers.Serializer[Any]):
    """One of a member's latest failures."""

    message_id = serializers.CharField()
    topic = serializers.CharField()
    exception = serializers.CharField()
    text = serializers.CharField()
    listener = serializers.CharField()
    attempt = serializers.IntegerField()
    failed_at = MomentField(source="failed_ms", allow_null=True)


class MemberStatusSerializer(serializers.Serializer[Any]):
    """What a member says of itself."""

    suspended = serializers.CharField(help_text="Why it consumes nothing now; empty: it does.")
    tells_failures = serializers.BooleanField(help_text="False: a client of another kind, which tells none.")
    failures = LatestFailureSerializer(many=True)


class MemberToldSerializer(serializers.Serializer[Any]):
    """A member that was asked."""

    client_id = serializers.CharField(source="member.client_id")
    status = MemberStatusSerializer(allow_null=True, help_text="Null: it did not answer.")


class MembersToldSerializer(serializers.Serializer[Any]):
    """The first 20 members of a group, by client id."""

    items = MemberToldSerializer(many=True, source="members")
    total_count = serializers.IntegerField()
    failures = serializers.DictField(child=serializers.CharField(), help_text="Address → why it did not answer.")
