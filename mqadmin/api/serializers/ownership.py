"""Fields that say whose a topic or group is: empty where nobody said it."""

from __future__ import annotations

from rest_framework import serializers


def owner_field() -> serializers.CharField:
    return serializers.CharField(source="ownership.owner", allow_blank=True, help_text="A team or a person.")


def description_field() -> serializers.CharField:
    return serializers.CharField(source="ownership.description", allow_blank=True)


def runbook_field() -> serializers.CharField:
    return serializers.CharField(
        source="ownership.runbook", allow_blank=True, help_text="Address of what to do when something is wrong."
    )
