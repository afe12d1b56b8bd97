"""Figures with their age, and moments, as every document has them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mqadmin.clusters.figures import Behind, BehindMethod, Drain, DrainConfidence, DrainKind, Figure


class FigureSerializer(serializers.Serializer[Any]):
    """A number and until when it is true; both null where it was never seen."""

    value = serializers.FloatField(allow_null=True)
    seen_at = serializers.DateTimeField(allow_null=True)


class BehindSerializer(serializers.Serializer[Any]):
    """Since when the next message has been waiting; `is_at_least`: it may have waited longer, for we looked later.

    `method`: `exact`, by the message's own store time, or `from_samples` of the queue's end; null: nothing waits, or it
    is not known.
    """

    since = serializers.DateTimeField(allow_null=True)
    is_at_least = serializers.BooleanField()
    method = serializers.CharField(allow_null=True, help_text=f"{', '.join(BehindMethod)}; null: not known.")


class DrainSerializer(serializers.Serializer[Any]):
    """When the lag will be gone; `seconds` for `in` alone.

    `confidence` for `in` and `never`: `steady` and `uneven` by the samples of five minutes, whose halves agree or not;
    `few_samples`: by the present rates. `per_s`: how many messages a second the lag loses then.
    """

    when = serializers.ChoiceField(choices=[kind.value for kind in DrainKind])
    seconds = serializers.FloatField(allow_null=True)
    confidence = serializers.CharField(allow_null=True, help_text=f"{', '.join(DrainConfidence)}; null: not known.")
    per_s = serializers.FloatField(allow_null=True)


@extend_schema_field(FigureSerializer)
class FigureField(serializers.ReadOnlyField):
    """Writes a Figure."""

    def to_representation(self, value: Figure) -> dict[str, Any]:
        return {"value": value.value, "seen_at": moment(value.seen_at)}


@extend_schema_field(BehindSerializer)
class BehindField(serializers.ReadOnlyField):
    """Writes a Behind."""

    def to_representation(self, value: Behind) -> dict[str, Any]:
        return {"since": moment(value.since), "is_at_least": value.is_at_least, "method": value.told_method}


@extend_schema_field(DrainSerializer)
class DrainField(serializers.ReadOnlyField):
    """Writes a Drain."""

    def to_representation(self, value: Drain) -> dict[str, Any]:
        return {
            "when": value.kind,
            "seconds": value.seconds,
            "confidence": value.confidence,
            "per_s": value.per_s,
        }


def moment(value: datetime | None) -> str | None:
    """Writes a moment as the other fields do: ISO 8601, in UTC."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z") if value is not None else None
