"""Rules, channels and silences; what is pending, fires or has resolved; what was told of it, and to whom."""

from __future__ import annotations

import uuid

from django.db import models

from mqadmin.alerts.channels.kinds import ChannelKind
from mqadmin.alerts.conditions import About, Subject
from mqadmin.alerts.noticing import NoticeKind
from mqadmin.alerts.stepping import State
from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster
from mqadmin.delivery import DeliveryState

RULE_NAME_CHARS_MAX = 100
CHANNEL_NAME_CHARS_MAX = 100
SILENCE_NAME_CHARS_MAX = 100
PATTERN_CHARS_MAX = 255
PERSON_CHARS_MAX = 150
NOTE_CHARS_MAX = 500
PLACE_CHARS_MAX = 255
ERROR_CHARS_MAX = 500
LANGUAGE_CHARS_MAX = 10
ZONE_CHARS_MAX = 64


class AlertChannel(models.Model):
    """A way to people. `sealed` holds its address and secret, encrypted; `place` what of it may be shown."""

    name = models.CharField(max_length=CHANNEL_NAME_CHARS_MAX, unique=True)
    kind = models.CharField(max_length=10, choices=ChannelKind)
    language = models.CharField(max_length=LANGUAGE_CHARS_MAX, default="en")
    recipients = models.TextField(blank=True, default="")
    sealed = models.TextField(blank=True, default="")
    place = models.CharField(max_length=PLACE_CHARS_MAX, blank=True, default="")
    made_by = models.CharField(max_length=PERSON_CHARS_MAX)
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


class AlertRule(models.Model):
    """What is watched for, of which clusters and groups or brokers (patterns), and who is told of it."""

    name = models.CharField(max_length=RULE_NAME_CHARS_MAX, unique=True)
    about = models.CharField(max_length=20, choices=About)
    clusters = models.CharField(max_length=PATTERN_CHARS_MAX, default="*")
    names = models.CharField(max_length=PATTERN_CHARS_MAX, default="*")
    verdicts = models.JSONField(default=list, blank=True)
    threshold = models.PositiveBigIntegerField(default=0)
    window_minutes = models.PositiveIntegerField(default=0)
    for_s = models.PositiveIntegerField(default=0)
    resolve_s = models.PositiveIntegerField(default=0)
    escalate_minutes = models.PositiveIntegerField(default=0)
    channels = models.ManyToManyField(AlertChannel, related_name="rules", blank=True)
    escalation_channels = models.ManyToManyField(AlertChannel, related_name="escalating_rules", blank=True)
    is_running = models.BooleanField(default=True)
    made_by = models.CharField(max_length=PERSON_CHARS_MAX)
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}: {self.about} of {self.clusters}/{self.names}"


class AlertSilence(models.Model):
    """A time in which nobody is told: once, or every week (`weekdays`, 0: Monday). Patterns, as in rules."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="alert_silences")
    name = models.CharField(max_length=SILENCE_NAME_CHARS_MAX)
    names = models.CharField(max_length=PATTERN_CHARS_MAX, default="*")
    rules = models.CharField(max_length=PATTERN_CHARS_MAX, default="*")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True, blank=True)
    weekdays = models.JSONField(default=list, blank=True)
    from_minute = models.PositiveSmallIntegerField(default=0)
    to_minute = models.PositiveSmallIntegerField(default=0)
    zone = models.CharField(max_length=ZONE_CHARS_MAX, default="UTC")
    note = models.CharField(max_length=NOTE_CHARS_MAX, blank=True, default="")
    made_by = models.CharField(max_length=PERSON_CHARS_MAX)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "name"], name="mq_alert_silence_identity"),)

    def __str__(self) -> str:
        return f"{self.name}: {self.names}"


class Alert(models.Model):
    """One thing of which a rule's condition holds, or held.

    `since`: since when it has held; `calm_since`: since when it has not, while it still fires. `reading`: what was
    read when it last changed (`sentences.py` makes words of it). A row that is pending and does not come true goes.
    """

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="alerts")
    subject = models.CharField(max_length=10, choices=[(one.value, one.value) for one in Subject])
    name = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    state = models.CharField(max_length=10, choices=State)
    since = models.DateTimeField()
    fired_at = models.DateTimeField(null=True, blank=True)
    calm_since = models.DateTimeField(null=True, blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    is_silenced = models.BooleanField(default=False)
    told_at = models.DateTimeField(null=True, blank=True)
    resolve_told_at = models.DateTimeField(null=True, blank=True)
    escalated_at = models.DateTimeField(null=True, blank=True)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=PERSON_CHARS_MAX, blank=True, default="")
    acknowledged_note = models.CharField(max_length=NOTE_CHARS_MAX, blank=True, default="")
    reading = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = (
            # However many look at the same time, a thing fires once.
            models.UniqueConstraint(
                fields=["rule", "cluster", "name"],
                condition=~models.Q(state=State.RESOLVED),
                name="mq_alert_once",
            ),
        )
        indexes = (
            models.Index(fields=["state", "fired_at", "id"], name="mq_alert_by_state"),
            models.Index(fields=["cluster", "state", "fired_at", "id"], name="mq_alert_of_cluster"),
            models.Index(fields=["cluster", "name", "state"], name="mq_alert_of_name"),
            models.Index(
                fields=["resolved_at"],
                name="mq_alert_untold",
                condition=models.Q(state=State.RESOLVED, told_at__isnull=False, resolve_told_at__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return f"{self.rule_id} {self.name}: {self.state}"


class AlertNotice(models.Model):
    """What is told at one moment: alerts of one rule in one cluster. `rule` null: a test, or the rule is gone."""

    rule = models.ForeignKey(AlertRule, null=True, on_delete=models.SET_NULL, related_name="notices")
    cluster = models.ForeignKey(Cluster, null=True, on_delete=models.CASCADE, related_name="alert_notices")
    kind = models.CharField(max_length=10, choices=NoticeKind)
    alerts = models.ManyToManyField(Alert, related_name="notices")
    rule_name = models.CharField(max_length=RULE_NAME_CHARS_MAX, blank=True, default="")
    made_at = models.DateTimeField()

    class Meta:
        indexes = (
            models.Index(fields=["rule", "cluster", "made_at"], name="mq_alert_notice_of_key"),
            models.Index(fields=["made_at"], name="mq_alert_notice_by_age"),
        )

    def __str__(self) -> str:
        return f"{self.rule_name}: {self.kind}"


class AlertDelivery(models.Model):
    """A notice on its way through one channel. `key` stays the same however often it is tried."""

    notice = models.ForeignKey(AlertNotice, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.ForeignKey(AlertChannel, null=True, on_delete=models.SET_NULL, related_name="deliveries")
    channel_name = models.CharField(max_length=CHANNEL_NAME_CHARS_MAX)
    key = models.UUIDField(default=uuid.uuid4, unique=True)
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.WAITING)
    attempt_count = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField()
    made_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=ERROR_CHARS_MAX, blank=True, default="")

    class Meta:
        indexes = (
            models.Index(
                fields=["due_at"],
                name="mq_alert_delivery_due",
                condition=models.Q(state=DeliveryState.WAITING),
            ),
            models.Index(fields=["made_at", "id"], name="mq_alert_delivery_latest"),
        )

    def __str__(self) -> str:
        return f"{self.channel_name}: {self.state}"


class AlertTurn(models.Model):
    """Who looks at the rules now, and when that was done last: one row, taken by conditional update."""

    NAME = "alerts"

    name = models.CharField(max_length=20, unique=True, default=NAME)
    taken_until = models.DateTimeField(null=True, blank=True)
    looked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"looked at {self.looked_at}"
