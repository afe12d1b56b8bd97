"""Makes a channel for alerts, or changes one. Its address and secret are kept sealed and are never shown again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import SecretField
from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, ItemState, Preview, Undo
from mqadmin.alerts import sealing
from mqadmin.alerts.channels.kinds import ChannelKind
from mqadmin.alerts.fields import NameField, mail_addresses
from mqadmin.alerts.models import CHANNEL_NAME_CHARS_MAX, PLACE_CHARS_MAX, AlertChannel
from mqadmin.alerts.posting import target_of
from mqadmin.people.current_caller import current_caller

CHANNELS_MAX = 100
URL_CHARS_MAX = 2000
SECRET_CHARS_MAX = 500
RECIPIENTS_MAX = 50
RECIPIENTS_CHARS_MAX = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAlertChannel:
    channel: Annotated[str, NameField(label=gettext_lazy("Name"), max_length=CHANNEL_NAME_CHARS_MAX)]
    kind: Annotated[str, forms.ChoiceField(label=gettext_lazy("Kind"), choices=ChannelKind)]
    language: Annotated[
        str,
        forms.ChoiceField(label=gettext_lazy("Language of its messages"), choices=settings.LANGUAGES),
    ] = "en"
    recipients: Annotated[
        str,
        forms.CharField(
            label=gettext_lazy("Mail addresses"),
            max_length=RECIPIENTS_CHARS_MAX,
            help_text=gettext_lazy("Of a channel by mail: separated by blanks or commas."),
        ),
    ] = ""
    url: Annotated[
        str,
        SecretField(
            label=gettext_lazy("Address of the webhook"),
            max_length=URL_CHARS_MAX,
            help_text=gettext_lazy("Of all other kinds. It is kept sealed and not shown again; empty: as it is."),
        ),
    ] = ""
    secret: Annotated[
        str,
        SecretField(
            label=gettext_lazy("Secret of its signature"),
            max_length=SECRET_CHARS_MAX,
            help_text=gettext_lazy("Of a webhook, DingTalk and Feishu. Kept like the address; empty: as it is."),
        ),
    ] = ""


@dataclass(frozen=True, slots=True)
class ChannelPlan:
    sealed: str
    place: str
    recipients: str


def preview(arguments: SetAlertChannel) -> Preview[ChannelPlan]:
    """Returns what may be shown of it. Raises ValidationError by argument."""
    present = find_channel(arguments.channel)
    if present is None and AlertChannel.objects.count() >= CHANNELS_MAX:
        words = _("There are %(most)d channels already: delete one that is not needed.")
        raise ValidationError({"channel": words % {"most": CHANNELS_MAX}})
    plan = _mail(arguments) if arguments.kind == ChannelKind.MAIL else _posted(arguments, present)
    after = {"kind": arguments.kind, "language": arguments.language, "place": plan.place}
    if plan.recipients:
        after["recipients"] = plan.recipients
    if plan.sealed != (present.sealed if present is not None else ""):
        after["sealed"] = "new"
    warnings = []
    if arguments.kind == ChannelKind.MAIL and not settings.EMAIL_HOST:
        warnings.append(_("This installation names no mail server yet: set MQADMIN_MAIL."))
    return Preview((Change("", _values(present), after),), plan, tuple(warnings))


def _mail(arguments: SetAlertChannel) -> ChannelPlan:
    recipients = mail_addresses(arguments.recipients)
    if not recipients:
        raise ValidationError({"recipients": _("Write at least one mail address.")})
    if len(recipients) > RECIPIENTS_MAX:
        words = _("A channel has %(most)d recipients at most; a mailing list has more.")
        raise ValidationError({"recipients": words % {"most": RECIPIENTS_MAX}})
    return ChannelPlan("", recipients[0] if len(recipients) == 1 else "", " ".join(recipients))


def _posted(arguments: SetAlertChannel, present: AlertChannel | None) -> ChannelPlan:
    is_same_kind = present is not None and present.kind == arguments.kind
    if not arguments.url and not is_same_kind:
        raise ValidationError({"url": _("Write the address to which it is posted.")})
    if present is not None and is_same_kind and not arguments.url and not arguments.secret:
        return ChannelPlan(present.sealed, present.place, "")
    try:
        address = sealing.opened(present.sealed) if present is not None and is_same_kind else {}
    except sealing.CannotOpen:
        address = {}
    if arguments.url:
        address["url"] = arguments.url.strip()
    if arguments.secret:
        address["secret"] = arguments.secret
    try:
        target = target_of(address.get("url", ""))
    except ValueError as error:
        raise ValidationError({"url": str(error)}) from error
    return ChannelPlan(sealing.seal(address), target.host[:PLACE_CHARS_MAX], "")


def carry_out(arguments: SetAlertChannel, preview: Preview[ChannelPlan]) -> Iterator[ItemOutcome]:
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    plan = preview.plan
    values = {
        "kind": arguments.kind,
        "language": arguments.language,
        "recipients": plan.recipients,
        "sealed": plan.sealed,
        "place": plan.place,
    }
    with transaction.atomic():
        AlertChannel.objects.update_or_create(
            name=arguments.channel,
            defaults=values,
            create_defaults={**values, "made_by": current_caller().name, "made_at": timezone.now()},
        )
    yield change.done()


def undo(arguments: SetAlertChannel, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the deletion of a new one; what was sealed before is in no audit, so nothing brings it back."""
    (outcome,) = outcomes
    if outcome.state != ItemState.DONE or outcome.before != {}:
        return None
    return Undo("delete_alert_channel", {"channel": arguments.channel})


def adapt(form: forms.Form, subject: str) -> None:
    """Starts at what may be shown."""
    if (row := find_channel(subject)) is not None:
        for name in ("kind", "language", "recipients"):
            form.fields[name].initial = getattr(row, name)


def find_channel(name: str) -> AlertChannel | None:
    return AlertChannel.objects.filter(name=name).first() if name else None


def require_channel(name: str) -> AlertChannel:
    """Raises ValidationError for the argument `channel`."""
    if (found := find_channel(name)) is None:
        raise ValidationError({"channel": _("There is no channel of this name.")})
    return found


def _values(row: AlertChannel | None) -> dict[str, Any]:
    if row is None:
        return {}
    values = {"kind": row.kind, "language": row.language, "place": row.place}
    return values | ({"recipients": row.recipients} if row.recipients else {})


DECLARATION: InstallationAction[SetAlertChannel, ChannelPlan] = InstallationAction(
    name="set_alert_channel",
    title=gettext_lazy("Set a channel for alerts"),
    permission="mq_alerts.change_alertchannel",
    arguments=SetAlertChannel,
    subject="channel",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
