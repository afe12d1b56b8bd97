"""Shapes of dead letters and of what they died of."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.api.serializers.groups import RebalanceSerializer
from mqadmin.api.serializers.replays import ENTRY_STATES
from mqadmin.api.serializers.retries import FailedAttemptSerializer
from mqadmin.deadletters.bodies import BodyKind
from mqadmin.deadletters.exporting import BodyEncoding


class FailureSerializer(serializers.Serializer[Any]):
    """Dead letters of one group that died alike. What no member told is empty."""

    id = serializers.IntegerField(source="pk")
    group = serializers.CharField(source="group_name")
    origin_topic = serializers.CharField(help_text="The topic that they were first sent to.")
    tag = serializers.CharField()
    attempt_count = serializers.IntegerField(help_text="How often each was tried.")
    failure_class = serializers.CharField(help_text="The class of the exception.")
    failure_text = serializers.CharField(help_text="The first line of the first exception.")
    shape = serializers.CharField(help_text="What their bodies have in common.")
    dead_count = serializers.IntegerField(help_text="All that were seen, also those that are not kept any more.")
    first_dead_at = serializers.DateTimeField()
    last_dead_at = serializers.DateTimeField()
    archived_at = serializers.DateTimeField(allow_null=True, help_text="Null: it is in lists.")
    owner = serializers.CharField()
    note = serializers.CharField()


class FailureDetailSerializer(FailureSerializer):
    """A failure with its trend."""

    share = serializers.FloatField(
        allow_null=True,
        help_text="Of all dead letters of the cluster's listed failures, from 0 to 1; null where it is archived.",
    )
    trend = serializers.ListField(
        child=serializers.IntegerField(), help_text="How many died in each of the last 24 hours, the present one last."
    )


class GroupedFailuresSerializer(serializers.Serializer[Any]):
    """Failures that have the same value in the field that they are put together by."""

    value = serializers.CharField(allow_blank=True)
    dead_count = serializers.IntegerField()
    failure_count = serializers.IntegerField()
    share = serializers.FloatField(help_text="Of all that the filter found, from 0 to 1.")
    first_dead_at = serializers.DateTimeField()
    last_dead_at = serializers.DateTimeField()


class BeginningActionSerializer(serializers.Serializer[Any]):
    """An entry of the audit; the audit has all of it under its number."""

    number = serializers.IntegerField()
    at = serializers.DateTimeField()
    action = serializers.CharField()
    subject = serializers.CharField()
    actor = serializers.CharField()
    outcome = serializers.CharField()


class BeginningSerializer(serializers.Serializer[Any]):
    """What was observed and done when a failure began, each kind oldest first."""

    began_at = serializers.DateTimeField(
        help_text="When the first attempt failed; where its attempts were not read, when the first message died."
    )
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    rebalances = RebalanceSerializer(many=True)
    actions = BeginningActionSerializer(many=True)
    are_rebalances_kept = serializers.BooleanField(help_text="False: they are older than what is kept of them.")


class DeadLetterSerializer(serializers.Serializer[Any]):
    """A message of a %DLQ% topic. What no member told is empty."""

    id = serializers.IntegerField(source="pk")
    failure = serializers.IntegerField(source="failure_id")
    group = serializers.CharField(source="group_name")
    message_id = serializers.CharField(help_text="The sender's id, else the broker's.")
    offset_message_id = serializers.CharField(help_text="The broker's id of the dead letter.")
    broker_name = serializers.CharField()
    queue_id = serializers.IntegerField()
    queue_offset = serializers.IntegerField()
    dead_at = serializers.DateTimeField()
    origin_topic = serializers.CharField()
    tag = serializers.CharField()
    keys = serializers.SerializerMethodField()
    born_at = serializers.DateTimeField(allow_null=True)
    born_host = serializers.CharField()
    attempt_count = serializers.IntegerField()
    failure_class = serializers.CharField()
    failure_text = serializers.CharField()
    failed_member = serializers.CharField(help_text="The client that failed last.")
    failed_listener = serializers.CharField()
    body_bytes = serializers.IntegerField()
    archived_at = serializers.DateTimeField(allow_null=True, help_text="Null: it is in lists.")

    def get_keys(self, row: Any) -> list[str]:
        return str(row.keys).split()


class ExportedDeadLetterSerializer(serializers.Serializer[Any]):
    """A dead letter with what it carried; `…/replay-files` takes such files."""

    properties = serializers.DictField(child=serializers.CharField())
    body = serializers.CharField(help_text="As it was sent, not compressed.")
    body_encoding = serializers.ChoiceField(
        choices=[(encoding.value, encoding.value) for encoding in BodyEncoding],
        help_text="`base64`: it is no text; `masked`: hidden from the caller; `absent`: it was too large to be kept.",
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Returns those of the list, and then these."""
        listed = {name: field for name, field in DeadLetterSerializer().get_fields().items() if name != "keys"}
        for name, field in listed.items():
            field.source = f"dead.{field.source or name}"
        keys = serializers.CharField(source="dead.keys", help_text="Separated by spaces.")
        cluster = serializers.CharField(help_text="Whose dead letter it is.")
        return {"cluster": cluster, **listed, "keys": keys, **super().get_fields()}


class BodySerializer(serializers.Serializer[Any]):
    """A body as text. `masked`: hidden from the caller's role; `gone`: neither kept nor on the broker, see `note`."""

    kind = serializers.ChoiceField(choices=[(kind.value, kind.value) for kind in BodyKind])
    text = serializers.CharField(help_text="JSON is indented, what is no text in hexadecimal.")
    is_cut = serializers.BooleanField(help_text="There is more.")
    note = serializers.CharField()


class MendedSerializer(serializers.Serializer[Any]):
    """The copy that a replay sends in place of the original, with all its properties."""

    by = serializers.CharField()
    at = serializers.DateTimeField()
    version = serializers.IntegerField(help_text="Said when it is mended further: a newer one refuses.")
    body = BodySerializer()
    properties = serializers.DictField(child=serializers.CharField())


class ReplayOfSerializer(serializers.Serializer[Any]):
    """What a replay did with a dead letter."""

    replay = serializers.IntegerField(source="job_id")
    entry = serializers.IntegerField(source="pk")
    state = serializers.ChoiceField(choices=ENTRY_STATES)
    words = serializers.CharField(help_text="Why it waits, or is skipped, refused or unknown.")
    topic = serializers.CharField()
    new_id = serializers.CharField(help_text="The broker's id of what was sent.")
    lookup_key = serializers.CharField(
        help_text="The key by which brokers find what was sent; empty where nothing can have been."
    )
    sent_at = serializers.DateTimeField(allow_null=True)
    dead_again = serializers.IntegerField(
        source="dead_again_id", allow_null=True, help_text="The dead letter that it became again."
    )


class DeadLetterDetailSerializer(DeadLetterSerializer):
    """A dead letter with its properties and its body."""

    is_on_broker = serializers.BooleanField(
        allow_null=True, help_text="False: what is kept is all there is; null: nothing was observed of its queue."
    )
    properties = serializers.DictField(child=serializers.CharField(), source="kept.properties")
    body_is_kept = serializers.BooleanField(help_text="It can be read and replayed when the broker has removed it.")
    body = BodySerializer()
    attempts = FailedAttemptSerializer(many=True, help_text="Those that led to it, as far as they were seen.")
    mended = MendedSerializer(allow_null=True)
    replays = ReplayOfSerializer(many=True, help_text="The latest 20, the last first.")
