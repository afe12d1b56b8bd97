"""Shapes of replays and of the entries of their ledgers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.replays.becoming import Became
from mqadmin.replays.states import EntryState, JobState, Target

ENTRY_STATES = [(one.value, one.value) for one in EntryState]


class ReplaySerializer(serializers.Serializer[Any]):
    """A replay. The counts of the states add up to `total_count`."""

    id = serializers.IntegerField(source="pk")
    group = serializers.CharField(source="group_name")
    state = serializers.ChoiceField(choices=[(one.value, one.value) for one in JobState])
    target = serializers.ChoiceField(choices=[(one.value, one.value) for one in Target])
    target_topic = serializers.CharField(help_text="Of another topic alone.")
    selection = serializers.DictField(help_text="What was selected; the ledger has what that was when it started.")
    skip_replayed = serializers.BooleanField(source="skips_replayed")
    rate = serializers.IntegerField(source="rate_per_s", help_text="Messages a second.")
    stop_percent = serializers.IntegerField(help_text="It stops when more of those sent fail again; 0: never.")
    started_by = serializers.CharField()
    approved_by = serializers.CharField(help_text="Empty: nobody had to, or nobody has yet.")
    approved_at = serializers.DateTimeField(allow_null=True)
    note = serializers.CharField(help_text="What the ledger lacks of what was selected.")
    problem = serializers.CharField(help_text="Why it does not go on at this moment, or stopped by itself.")
    created_at = serializers.DateTimeField()
    frozen_at = serializers.DateTimeField(allow_null=True, help_text="When its ledger was complete.")
    ended_at = serializers.DateTimeField(allow_null=True)
    total_count = serializers.IntegerField()
    waiting_count = serializers.IntegerField()
    sending_count = serializers.IntegerField()
    sent_count = serializers.IntegerField()
    skipped_count = serializers.IntegerField()
    refused_count = serializers.IntegerField()
    unknown_count = serializers.IntegerField()
    failed_count = serializers.IntegerField(help_text="Those that failed again at least once, as far as that was seen.")
    dead_again_count = serializers.IntegerField(help_text="Those of them that are dead letters again.")


class ReplayEntrySerializer(serializers.Serializer[Any]):
    """One message of a replay."""

    id = serializers.IntegerField(source="pk")
    dead_letter = serializers.IntegerField(
        source="dead_letter_id", allow_null=True, help_text="Null: the index has removed it."
    )
    line = serializers.IntegerField(allow_null=True, help_text="Of a file; null: it is of the index.")
    message_id = serializers.CharField()
    state = serializers.ChoiceField(choices=ENTRY_STATES)
    words = serializers.CharField(help_text="Why it waits, or is skipped, refused or unknown.")
    attempt_count = serializers.IntegerField()
    topic = serializers.CharField()
    broker_name = serializers.CharField()
    queue_id = serializers.IntegerField(allow_null=True)
    queue_offset = serializers.IntegerField(
        allow_null=True, help_text="Its own, once it is sent; before: none below can be it."
    )
    new_id = serializers.CharField(help_text="The broker's id of what was sent.")
    lookup_key = serializers.CharField(
        help_text="The key by which brokers find what was sent; empty where nothing can have been."
    )
    sent_at = serializers.DateTimeField(allow_null=True)
    became = serializers.CharField(
        allow_null=True,
        help_text=f"What became of it, as far as offsets and failed attempts tell: {', '.join(Became.values)}; null: it"
        " was not sent.",
    )
    failed_attempt = serializers.IntegerField(
        allow_null=True,
        help_text="Which attempt failed last, from 1; 0: it died, none was seen; null: none failed.",
    )
    retry_at = serializers.DateTimeField(allow_null=True, help_text="When its next attempt comes, where told.")
    dead_again = serializers.IntegerField(
        source="dead_again_id", allow_null=True, help_text="The dead letter that it became again."
    )
    group_is_past = serializers.BooleanField(
        allow_null=True, help_text="The failed group's committed offset is behind it; null: not known."
    )
