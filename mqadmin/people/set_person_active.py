"""Activates or deactivates an account: one that is not active is logged out everywhere, its tokens and jobs refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import (
    ActionRefused,
    Change,
    InstallationAction,
    ItemOutcome,
    Preview,
    Undo,
)
from mqadmin.actions.switches import undo_of_switch, yes_no
from mqadmin.people import log_ins, persons
from mqadmin.people.words import YES_NO


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPersonActive:
    """Whether the person can log in."""

    person: Annotated[str, persons.name_field(label=gettext_lazy("Person"))]
    active: Annotated[str, forms.ChoiceField(label=gettext_lazy("Can log in"), choices=YES_NO)]


def preview(arguments: SetPersonActive) -> Preview[User]:
    """Returns the change. Raises ValidationError; ActionRefused for the last administrator."""
    person = persons.find(arguments.person)
    if arguments.active == "no" and persons.is_last_administrator(person):
        words = _("%(person)s is the last administrator: make somebody else one first.")
        raise ActionRefused(words % {"person": person.get_username()})
    change = Change("", _values(is_active=person.is_active), {"active": arguments.active})
    warnings = []
    if change.is_change and arguments.active == "no":
        count = log_ins.open_log_ins(person.pk).count()
        warnings.append(
            _("%(count)d log-ins end. Tokens and scheduled jobs of the account are refused.") % {"count": count}
        )
    return Preview((change,), person, tuple(warnings))


def carry_out(arguments: SetPersonActive, preview: Preview[User]) -> Iterator[ItemOutcome]:
    """Writes it, and ends the log-ins of an account that is deactivated."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    with transaction.atomic():
        preview.plan.is_active = arguments.active == "yes"
        preview.plan.save(update_fields=["is_active"])
        if not preview.plan.is_active:
            log_ins.end(list(log_ins.open_log_ins(preview.plan.pk)))
    yield change.done()


def undo(arguments: SetPersonActive, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the opposite."""
    return undo_of_switch(DECLARATION.name, arguments, "active", outcomes)


def adapt(form: forms.Form, subject: str) -> None:
    """Offers the opposite of what is."""
    person = persons.accounts().filter(username=subject).first() if subject else None
    if person is not None:
        form.fields["active"].initial = yes_no(not person.is_active)


def _values(*, is_active: bool) -> dict[str, str]:
    return {"active": yes_no(is_active)}


DECLARATION: InstallationAction[SetPersonActive, User] = InstallationAction(
    name="set_person_active",
    title=gettext_lazy("Activate or deactivate an account"),
    permission="auth.change_user",
    arguments=SetPersonActive,
    subject="person",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
