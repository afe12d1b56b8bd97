"""Shape of a problem (RFC 9457)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class FieldErrorSerializer(serializers.Serializer[Any]):
    """What is wrong with one argument or parameter; `name` empty where it is none of them alone."""

    name = serializers.CharField(allow_blank=True)
    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """An answer that is not what was asked for."""

    type = serializers.CharField(help_text="An address of this API that says what the kind means.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = FieldErrorSerializer(many=True, required=False)  # type: ignore[assignment]
    run = serializers.UUIDField(required=False, help_text="The run that the audit has of it.")


class ProblemKindSerializer(serializers.Serializer[Any]):
    """A kind of problems: what it means, and what to do."""

    name = serializers.CharField()
    type = serializers.CharField(source="address")
    status = serializers.IntegerField(source="http_status")
    title = serializers.CharField()
    remedy = serializers.CharField()
