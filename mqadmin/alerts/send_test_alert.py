"""Sends a test through a channel, at once and once; what came of it is the outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview
from mqadmin.alerts import delivering
from mqadmin.alerts.models import (
    CHANNEL_NAME_CHARS_MAX,
    AlertChannel,
    AlertDelivery,
    AlertNotice,
)
from mqadmin.alerts.noticing import NoticeKind
from mqadmin.alerts.set_alert_channel import require_channel
from mqadmin.delivery import DeliveryState


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTestAlert:
    channel: Annotated[str, forms.CharField(label=gettext_lazy("Channel"), max_length=CHANNEL_NAME_CHARS_MAX)]


def preview(arguments: SendTestAlert) -> Preview[AlertChannel]:
    channel = require_channel(arguments.channel)
    return Preview((Change("", {}, {"sent_to": channel.place or channel.recipients}),), channel)


def carry_out(_arguments: SendTestAlert, preview: Preview[AlertChannel]) -> Iterator[ItemOutcome]:
    (change,) = preview.changes
    now = timezone.now()
    with transaction.atomic():
        notice = AlertNotice.objects.create(kind=NoticeKind.TEST, made_at=now)
        delivery = AlertDelivery.objects.create(
            notice=notice,
            channel=preview.plan,
            channel_name=preview.plan.name,
            attempt_count=1,
            # Nobody else takes it while it is being sent.
            due_at=now + delivering.CLAIMED_FOR,
            made_at=now,
        )
    state = delivering.deliver(delivery.pk, 1, now, is_last=True)
    delivery.refresh_from_db()
    yield change.done() if state == DeliveryState.SENT else change.failed(delivery.error)


DECLARATION: InstallationAction[SendTestAlert, AlertChannel] = InstallationAction(
    name="send_test_alert",
    title=gettext_lazy("Send a test through a channel"),
    permission="mq_alerts.change_alertchannel",
    arguments=SendTestAlert,
    subject="channel",
    preview=preview,
    carry_out=carry_out,
)
