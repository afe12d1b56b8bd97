"""Shapes of audit entries and of the check of their chain."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.api.serializers.actions import ITEM_STATES, DocumentField, UndoSerializer
from mqadmin.audit.models import Outcome


class EntryItemSerializer(serializers.Serializer[Any]):
    """What became of one item; its values are in `before` and `after` of the entry."""

    item = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(choices=ITEM_STATES)
    words = serializers.CharField(allow_blank=True, help_text="Why it is not done.")


class AuditEntrySerializer(serializers.Serializer[Any]):
    """All that an entry says, with its place in the chain."""

    number = serializers.IntegerField(help_text="Counted from 1 without gaps.")
    at = serializers.DateTimeField()
    run = serializers.UUIDField()
    actor = serializers.CharField(allow_blank=True)
    action = serializers.CharField()
    cluster = serializers.CharField(allow_blank=True, help_text="Empty: it is about the installation.")
    subject = serializers.CharField(allow_blank=True)
    arguments = DocumentField()
    before = DocumentField(help_text="Values of the subject, or of each item by its name.")
    after = DocumentField(help_text="As `before`; null is `not known`.")
    items = EntryItemSerializer(many=True)
    outcome = serializers.ChoiceField(choices=Outcome.choices)
    reason = serializers.CharField(allow_blank=True)
    undo = UndoSerializer(allow_null=True)
    way = serializers.CharField(allow_blank=True, help_text="page, rest, celery or command")
    address = serializers.CharField(allow_blank=True)
    user_agent = serializers.CharField(allow_blank=True)
    via = serializers.CharField(allow_blank=True, help_text="The token or job that acted for the actor.")
    batch = serializers.UUIDField(allow_null=True, help_text="What entries of one change of many have in common.")
    previous_hash = serializers.CharField(allow_blank=True)
    hash = serializers.CharField()


class HeadSerializer(serializers.Serializer[Any]):
    """An entry by its number, and its hash; number 0: the chain has none yet."""

    number = serializers.IntegerField()
    hash = serializers.CharField(allow_blank=True)


class CutSerializer(serializers.Serializer[Any]):
    """Where the oldest entries were removed, signed."""

    through = serializers.IntegerField(help_text="Number of the last entry that was removed.")
    hash = serializers.CharField()
    removed_count = serializers.IntegerField()
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    at = serializers.DateTimeField()


class CheckSerializer(serializers.Serializer[Any]):
    """What a check of the chain found."""

    checked_count = serializers.IntegerField()
    head = HeadSerializer(help_text="The last entry that was checked.")
    is_whole = serializers.BooleanField(help_text="No entry follows `head`; else go on with `after`.")
    broken = serializers.IntegerField(allow_null=True, help_text="Number of the first entry that is not as it was.")
    fault = serializers.CharField(allow_blank=True, help_text="What is wrong; empty: nothing is.")
    cut = CutSerializer(allow_null=True)
