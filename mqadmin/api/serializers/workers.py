"""Shapes of the workers that run instances."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.hosting.workers import WorkerState


class WorkerSerializer(serializers.Serializer[Any]):
    """A Celery worker that runs instances of this project's groups."""

    node = serializers.CharField(help_text="Its Celery node name.")
    state = serializers.ChoiceField(choices=[state.value for state in WorkerState])
    slots = serializers.IntegerField(help_text="How many instances it can run.")
    groups = serializers.ListField(
        child=serializers.CharField(),
        source="instances",
        help_text="The group of each instance that it runs, or was given; group@cluster on a further cluster.",
    )
    pid = serializers.IntegerField()
    started_at = serializers.DateTimeField()
    heartbeat_at = serializers.DateTimeField()
