"""Why a message failed, read out of the properties of its retry or its dead letter."""

from __future__ import annotations

from collections.abc import Mapping

from remoting.wire.failures import FailureReason
from remoting.wire.properties import Property


def read_reason(properties: Mapping[str, str]) -> FailureReason | None:
    """None where they carry none."""
    if Property.FAILURE_CLASS not in properties:
        return None
    return FailureReason(
        properties[Property.FAILURE_CLASS],
        properties.get(Property.FAILURE_TEXT, ""),
        properties.get(Property.FAILURE_LISTENER, ""),
        properties.get(Property.FAILURE_MEMBER, ""),
        int(properties[Property.FAILURE_ATTEMPT]),
    )
