"""Shapes of actions, their previews and their runs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mqadmin.action_runs.runs import InProgress, Result
from mqadmin.actions.declaration import AnyAction, ItemState
from mqadmin.api.serializers.problems import ProblemSerializer

ITEM_STATES = [(state.value, state.value) for state in ItemState]
_VALUES = "Values by name; {} is `not there`, null is `not known`."


@extend_schema_field({"type": ["object", "null"], "additionalProperties": {}, "description": _VALUES})
class ValuesField(serializers.ReadOnlyField):
    """Values of an item before or after: plain JSON already."""


@extend_schema_field({"type": "object", "additionalProperties": {}})
class DocumentField(serializers.ReadOnlyField):
    """A JSON object whose members the action decides on."""


@extend_schema_field({"oneOf": [{"$ref": "#/components/schemas/Outcome"}, {"type": "null"}]})
class OutcomeOrNone(serializers.ReadOnlyField):
    """An outcome; null while there is none. An enumeration that is described elsewhere would lack the null."""


class UndoSerializer(serializers.Serializer[Any]):
    """The run that takes this one back."""

    action = serializers.CharField()
    arguments = DocumentField()


class ItemSerializer(serializers.Serializer[Any]):
    """What became of one item: a broker, a name server, or (empty name) the subject itself."""

    item = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(choices=ITEM_STATES)
    before = ValuesField()
    after = ValuesField()
    words = serializers.CharField(allow_blank=True, help_text="Why it is not done.")
    secret = serializers.CharField(allow_blank=True, help_text="What was made, shown this once; else empty.")


class RunSerializer(serializers.Serializer[Any]):
    """A run of an action, as its audit entry says it. `outcome` null: it is still being carried out."""

    run = serializers.UUIDField()
    at = serializers.DateTimeField(help_text="When it ended, or began where it has not ended.")
    actor = serializers.CharField()
    action = serializers.CharField()
    cluster = serializers.CharField(allow_blank=True, help_text="Empty: it is about the installation.")
    subject = serializers.CharField(allow_blank=True)
    arguments = DocumentField()
    outcome = OutcomeOrNone()
    reason = serializers.CharField(allow_blank=True)
    items = ItemSerializer(many=True)
    undo = UndoSerializer(allow_null=True)
    is_repeat = serializers.BooleanField(help_text="Its key had carried it out before; nothing was done now.")


class ChangeSerializer(serializers.Serializer[Any]):
    """What a run would make of one item."""

    item = serializers.CharField(allow_blank=True)
    before = ValuesField()
    after = ValuesField()
    note = serializers.CharField(allow_blank=True)
    is_change = serializers.BooleanField()


class PreviewSerializer(serializers.Serializer[Any]):
    """What a run would do now. Send `fingerprint` with the run: it refuses when something has changed since."""

    changes = ChangeSerializer(many=True)
    warnings = serializers.ListField(child=serializers.CharField())
    has_changes = serializers.BooleanField()
    fingerprint = serializers.CharField()


class SubjectPreviewSerializer(serializers.Serializer[Any]):
    """What a run would do to one of many subjects; `preview` null: it would be refused, and `reason` says why."""

    subject = serializers.CharField(allow_blank=True)
    preview = PreviewSerializer(allow_null=True)
    reason = serializers.CharField(allow_blank=True)


class PreviewManySerializer(serializers.Serializer[Any]):
    """A preview for each subject."""

    items = SubjectPreviewSerializer(many=True)
    not_begun = serializers.ListField(child=serializers.CharField(), help_text="For these no time was left.")


class RunItemSerializer(serializers.Serializer[Any]):
    """What a run of one of many subjects would have answered by itself: its status, and one of the two documents."""

    status = serializers.IntegerField()
    run = RunSerializer(allow_null=True)
    problem = ProblemSerializer(allow_null=True)


class SubjectRunSerializer(RunItemSerializer):
    """What became of one of many subjects."""

    subject = serializers.CharField(allow_blank=True)


class RunManySerializer(serializers.Serializer[Any]):
    """What became of each subject; `batch` is by what the audit finds the runs together."""

    batch = serializers.UUIDField()
    items = SubjectRunSerializer(many=True)
    not_begun = serializers.ListField(
        child=serializers.CharField(),
        help_text="For these no time was left: the same request with the same key goes on with them.",
    )


class TogetherSerializer(serializers.Serializer[Any]):
    """Runs that were asked for together, and whether one of them is being carried out."""

    batch = serializers.UUIDField()
    is_under_way = serializers.BooleanField()
    items = RunSerializer(many=True)


class ActionSerializer(serializers.Serializer[Any]):
    """An action with the schema of its arguments on this cluster."""

    name = serializers.CharField()
    title = serializers.CharField()
    subject = serializers.CharField(help_text="The argument that names what it is about.")
    permission = serializers.CharField()
    is_allowed = serializers.BooleanField(help_text="Whether this caller may run it here.")
    is_confirmed_by_name = serializers.BooleanField(help_text="A run wants the subject's name as `confirmation`.")
    arguments = DocumentField(help_text="JSON Schema of the arguments.")


def run_document(found: Result | InProgress) -> dict[str, Any]:
    """Returns the document of a run."""
    document = {
        "run": found.run_id,
        "actor": found.actor,
        "action": found.action,
        "cluster": found.cluster,
        "subject": found.subject,
    }
    match found:
        case InProgress():
            document |= {"at": found.started_at, "outcome": None, "reason": "", "arguments": {}}
            document |= {"items": [], "undo": None, "is_repeat": True}
        case Result():
            document |= {"at": found.at, "outcome": found.outcome, "reason": found.reason}
            document |= {"arguments": found.arguments, "items": found.items, "undo": found.undo}
            document |= {"is_repeat": found.is_repeat}
    return dict(RunSerializer(document).data)


def action_document(action: AnyAction, schema: dict[str, Any], *, is_allowed: bool) -> dict[str, Any]:
    """Returns the document of an action."""
    return {
        "name": action.name,
        "title": str(action.title),
        "subject": action.subject,
        "permission": action.permission,
        "is_allowed": is_allowed,
        "is_confirmed_by_name": action.is_confirmed_by_name,
        "arguments": schema,
    }
