"""Shapes of people and their log-ins."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mqadmin.api.serializers.tokens import ROLES


@extend_schema_field({"oneOf": [{"$ref": "#/components/schemas/Role"}, {"type": "null"}]})
class RoleOrNone(serializers.ReadOnlyField):
    """A role, or null. An enumeration that is described elsewhere would lack the null."""


class ClusterRoleSerializer(serializers.Serializer[Any]):
    """A role on one cluster, beside the one on all."""

    cluster = serializers.CharField(source="cluster.name")
    role = serializers.ChoiceField(choices=ROLES)


class PersonSerializer(serializers.Serializer[Any]):
    """An account with its roles."""

    name = serializers.CharField()
    is_active = serializers.BooleanField(source="account.is_active")
    role = RoleOrNone(help_text="On all clusters; null: none.")
    cluster_roles = ClusterRoleSerializer(many=True)
    log_in_count = serializers.IntegerField(help_text="Log-ins that are open.")
    last_log_in = serializers.DateTimeField(allow_null=True)


class LogInSerializer(serializers.Serializer[Any]):
    """A log-in whose session goes on. The action `end_log_ins` takes its `log_in`."""

    log_in = serializers.CharField(source="pk", help_text="Its number.")
    at = serializers.DateTimeField()
    address = serializers.CharField(allow_blank=True)
    user_agent = serializers.CharField(allow_blank=True)
