"""Shapes of alerts, of their rules, channels and silences, and of what was told."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mqadmin.alerts.channels.kinds import ChannelKind
from mqadmin.alerts.conditions import About
from mqadmin.alerts.delivering import place_of
from mqadmin.alerts.fields import WEEKDAYS, clock_of
from mqadmin.alerts.models import Alert, AlertRule, AlertSilence
from mqadmin.alerts.noticing import NoticeKind
from mqadmin.alerts.sentences import what_words
from mqadmin.alerts.stepping import State
from mqadmin.delivery import DeliveryState


class AlertSerializer(serializers.Serializer[Any]):
    """Something of which a rule's condition holds, or held."""

    id = serializers.IntegerField(source="pk")
    rule = serializers.CharField(source="rule.name")
    about = serializers.ChoiceField(choices=[(one.value, one.value) for one in About], source="rule.about")
    name = serializers.CharField(help_text="The group or broker; empty where it is about the cluster.")
    state = serializers.ChoiceField(choices=[(one.value, one.value) for one in State])
    words = serializers.SerializerMethodField()
    reading = serializers.DictField(help_text="The numbers behind the words.")
    since = serializers.DateTimeField(help_text="Since when it has held.")
    fired_at = serializers.DateTimeField(allow_null=True)
    resolved_at = serializers.DateTimeField(allow_null=True)
    told_at = serializers.DateTimeField(allow_null=True, help_text="When people were told; null: not (yet).")
    is_silenced = serializers.BooleanField()
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.CharField()
    acknowledged_note = serializers.CharField()
    escalated_at = serializers.DateTimeField(allow_null=True)
    page = serializers.SerializerMethodField(
        help_text="What happened at that time: a group's curves, else the cluster's timeline."
    )

    def get_words(self, row: Alert) -> str:
        return what_words(row.rule.about, row.reading)

    def get_page(self, row: Alert) -> str:
        return place_of(row)


class AlertRuleSerializer(serializers.Serializer[Any]):
    """What is watched for, and who is told."""

    name = serializers.CharField()
    about = serializers.ChoiceField(choices=[(one.value, one.value) for one in About])
    clusters = serializers.CharField(help_text="A pattern; * stands for any part.")
    names = serializers.CharField(help_text="A pattern of groups or brokers.")
    verdicts = serializers.ListField(
        child=serializers.CharField(), help_text="Those that it watches, of a group or of a cluster."
    )
    threshold = serializers.IntegerField()
    window_minutes = serializers.IntegerField(help_text="In which dead letters are counted.")
    for_s = serializers.IntegerField(help_text="For so long it must hold before it fires.")
    resolve_s = serializers.IntegerField(help_text="For so long it must not hold before it resolves.")
    channels = serializers.SerializerMethodField()
    escalate_minutes = serializers.IntegerField(help_text="0: never.")
    escalation_channels = serializers.SerializerMethodField()
    is_running = serializers.BooleanField()
    firing_count = serializers.IntegerField()
    made_by = serializers.CharField()
    made_at = serializers.DateTimeField()

    def get_channels(self, row: AlertRule) -> list[str]:
        return sorted(one.name for one in row.channels.all())

    def get_escalation_channels(self, row: AlertRule) -> list[str]:
        return sorted(one.name for one in row.escalation_channels.all())


class AlertChannelSerializer(serializers.Serializer[Any]):
    """A way to people. Its address and secret are never told."""

    name = serializers.CharField(source="channel.name")
    kind = serializers.ChoiceField(choices=[(one.value, one.value) for one in ChannelKind], source="channel.kind")
    language = serializers.CharField(source="channel.language")
    place = serializers.CharField(source="channel.place", help_text="The host that it is posted to, or the recipient.")
    recipients = serializers.CharField(source="channel.recipients", help_text="Of mail.")
    rules = serializers.ListField(child=serializers.CharField())


class AlertSilenceSerializer(serializers.Serializer[Any]):
    """A time in which nobody is told."""

    name = serializers.CharField()
    names = serializers.CharField(help_text="A pattern of groups or brokers.")
    rules = serializers.CharField(help_text="A pattern of rules.")
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(allow_null=True)
    weekdays = serializers.SerializerMethodField(help_text="Empty: once.")
    from_time = serializers.SerializerMethodField()
    to_time = serializers.SerializerMethodField()
    zone = serializers.CharField()
    note = serializers.CharField()
    made_by = serializers.CharField()

    def get_weekdays(self, row: AlertSilence) -> list[str]:
        return [WEEKDAYS[day][0] for day in row.weekdays]

    def get_from_time(self, row: AlertSilence) -> str:
        return clock_of(row.from_minute)

    def get_to_time(self, row: AlertSilence) -> str:
        return clock_of(row.to_minute)


class AlertDeliverySerializer(serializers.Serializer[Any]):
    """A notice on its way through one channel."""

    id = serializers.IntegerField(source="pk")
    key = serializers.UUIDField(help_text="The same in the message, however often it is tried.")
    channel = serializers.CharField(source="channel_name")
    kind = serializers.ChoiceField(choices=[(one.value, one.value) for one in NoticeKind], source="notice.kind")
    rule = serializers.CharField(source="notice.rule_name")
    cluster = serializers.CharField(source="notice.cluster.name", default="")
    state = serializers.ChoiceField(choices=[(one.value, one.value) for one in DeliveryState])
    attempt_count = serializers.IntegerField()
    due_at = serializers.DateTimeField(help_text="While it waits: when it is tried next.")
    made_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField()
