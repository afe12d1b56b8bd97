"""Shapes of the instances of hosted groups."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.hosting.sentences import reason_words
from mqadmin.hosting.waiting import Reason, Why


class WaitSerializer(serializers.Serializer[Any]):
    """What instances wait for."""

    why = serializers.ChoiceField(choices=[(one.value, one.value) for one in Why])
    count = serializers.IntegerField(help_text="Instances that wait for it.")
    words = serializers.SerializerMethodField()
    numbers = serializers.DictField(help_text="The numbers behind the words.")

    def get_words(self, reason: Reason) -> str:
        return reason_words(reason)


class InstancesSerializer(serializers.Serializer[Any]):
    """How many instances of a group are wanted and run, and why there are fewer."""

    wanted = serializers.IntegerField()
    is_stopped = serializers.BooleanField(help_text="By an operator; the number wanted is kept.")
    running = serializers.IntegerField()
    starting = serializers.IntegerField()
    waits = WaitSerializer(many=True, help_text="Empty: as many run as are wanted.")
