"""Shapes of events."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.events.kinds import EventKind

KINDS = [(kind.value, kind.value) for kind in EventKind]


class EventSerializer(serializers.Serializer[Any]):
    """An event; docs/LIVE.md has the data of each kind."""

    id = serializers.IntegerField(source="pk", help_text="Grows; numbers may be left out.")
    at = serializers.DateTimeField()
    kind = serializers.ChoiceField(choices=KINDS)
    cluster = serializers.CharField(source="cluster_name")
    group = serializers.CharField(source="group_name", help_text="Empty: it is about the cluster itself.")
    data = serializers.DictField()  # type: ignore[assignment]  # the name is the websocket's
