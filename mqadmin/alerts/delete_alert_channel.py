"""Deletes a channel, with its address. Rules lose it, and what waits to be sent through it is given up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.utils.translation import gettext_lazy, ngettext

from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview
from mqadmin.alerts.models import CHANNEL_NAME_CHARS_MAX, AlertChannel
from mqadmin.alerts.set_alert_channel import require_channel


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAlertChannel:
    channel: Annotated[str, forms.CharField(label=gettext_lazy("Channel"), max_length=CHANNEL_NAME_CHARS_MAX)]


def preview(arguments: DeleteAlertChannel) -> Preview[AlertChannel]:
    channel = require_channel(arguments.channel)
    count = channel.rules.count() + channel.escalating_rules.count()
    words = ngettext(
        "%(n)d rule tells nobody through it any more.", "%(n)d rules tell nobody through it any more.", count
    )
    before = {"kind": channel.kind, "language": channel.language, "place": channel.place}
    return Preview((Change("", before, {}),), channel, (words % {"n": count},) if count else ())


def carry_out(_arguments: DeleteAlertChannel, preview: Preview[AlertChannel]) -> Iterator[ItemOutcome]:
    preview.plan.delete()
    yield preview.changes[0].done()


DECLARATION: InstallationAction[DeleteAlertChannel, AlertChannel] = InstallationAction(
    name="delete_alert_channel",
    title=gettext_lazy("Delete a channel for alerts"),
    permission="mq_alerts.delete_alertchannel",
    arguments=DeleteAlertChannel,
    subject="channel",
    preview=preview,
    carry_out=carry_out,
)
