"""What REST says of a name beside the name itself."""

from __future__ import annotations

from rest_framework import serializers

from remoting.wire.names import split_namespace


class NamespaceField(serializers.CharField):
    """The namespace in the name of a topic or group."""

    def to_representation(self, value: str) -> str:
        return split_namespace(value)[0]
