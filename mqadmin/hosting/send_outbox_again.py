"""Lets messages of the outbox that were given up be sent again: one by its id, or all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from consumer.outbox.delivery import retry
from consumer.outbox.models import OutboxMessage, OutboxState
from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview
from mqadmin.hosting import outbox

ALL = "all"
MESSAGE_ID_CHARS_MAX = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class SendOutboxAgain:
    """Which messages: the id of one, or "all"."""

    message: Annotated[str, forms.CharField(label=gettext_lazy("Message, or “all”"), max_length=MESSAGE_ID_CHARS_MAX)]


def preview(arguments: SendOutboxAgain) -> Preview[None]:
    """Returns what waits and what was given up, database by database, before and after. Raises ValidationError."""
    changes = [change for database in outbox.databases() if (change := _change(database, arguments.message))]
    if not changes:
        words = _("No message was given up.") if arguments.message == ALL else _("No message of this id was given up.")
        raise ValidationError({"message": words})
    # What waits or fails meanwhile makes no difference to the decision.
    return Preview(tuple(changes), None, rests_on={change.item: "" for change in changes})


def _change(database: str, message: str) -> Change | None:
    given_up = OutboxMessage.objects.using(database).filter(state=OutboxState.FAILED)
    if message == ALL:
        count = given_up[: outbox.COUNT_MAX].count()
        return Change(database, {"given_up": count}, {"given_up": 0}) if count else None
    row = given_up.filter(message_id=message).first()
    if row is None:
        return None
    return Change(database, {"state": OutboxState.FAILED.value}, {"state": OutboxState.PENDING.value}, row.topic)


def carry_out(arguments: SendOutboxAgain, preview: Preview[None]) -> Iterator[ItemOutcome]:
    """Makes their rows wait again; the next delivery, seconds later, sends them."""
    ids = None if arguments.message == ALL else [arguments.message]
    for change in preview.changes:
        if retry(change.item, ids):
            yield change.done()
        else:
            yield change.skipped(_("It is sent again already."))


DECLARATION: InstallationAction[SendOutboxAgain, None] = InstallationAction(
    name="send_outbox_again",
    title=gettext_lazy("Send what was given up again"),
    permission="mq_consumer.change_outboxmessage",
    arguments=SendOutboxAgain,
    subject="message",
    preview=preview,
    carry_out=carry_out,
)
