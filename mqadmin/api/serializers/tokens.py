"""Shape of API tokens."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.people.roles import Role

ROLES = [(role.value, role.value) for role in Role]


class TokenSerializer(serializers.Serializer[Any]):
    """A token of the caller's; its secret was shown when it was made."""

    name = serializers.CharField()
    role = serializers.ChoiceField(choices=ROLES)
    clusters = serializers.ListField(child=serializers.CharField(), help_text="None: all of them.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    last_used_from = serializers.CharField(allow_blank=True)
