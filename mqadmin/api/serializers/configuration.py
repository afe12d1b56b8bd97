"""Shapes of what a file of topics and groups would change, and of what became of it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.api.serializers.actions import ChangeSerializer, RunItemSerializer
from mqadmin.ownership.models import Described


class StepSerializer(serializers.Serializer[Any]):
    """One run of an action that would change something."""

    kind = serializers.ChoiceField(source="entry.kind", choices=Described.choices)
    name = serializers.CharField(source="entry.name")
    action = serializers.CharField()
    changes = ChangeSerializer(many=True)


class PlanSerializer(serializers.Serializer[Any]):
    """What differs from the file, in its order. Send `fingerprint` when it is applied."""

    items = StepSerializer(many=True)
    fingerprint = serializers.CharField()


class AppliedStepSerializer(RunItemSerializer):
    """What became of one step."""

    kind = serializers.ChoiceField(choices=Described.choices)
    name = serializers.CharField()
    action = serializers.CharField()


class AppliedSerializer(serializers.Serializer[Any]):
    """What became of each step; `batch` is by what the audit finds them together."""

    batch = serializers.UUIDField()
    items = AppliedStepSerializer(many=True)
    not_begun = StepSerializer(
        many=True, help_text="For these no time was left: the same request with the same key goes on with them."
    )
