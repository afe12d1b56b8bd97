"""Makes an account, with a role for all clusters. Its password is made here and shown once."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, ItemState, Preview, Undo
from mqadmin.people import persons
from mqadmin.people.roles import Role
from mqadmin.people.words import ROLE_CHOICES

# 15 random bytes are 20 characters that a person can still type.
PASSWORD_BYTES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPerson:
    """The account, and its role for all clusters; "" for none yet."""

    person: Annotated[str, persons.name_field(label=gettext_lazy("Name"))]
    role: Annotated[
        str,
        forms.ChoiceField(
            label=gettext_lazy("Role for all clusters"),
            choices=ROLE_CHOICES,
            help_text=gettext_lazy("A role for some clusters alone is given on the page of the person."),
        ),
    ] = ""


def preview(arguments: AddPerson) -> Preview[None]:
    """Returns the account that will be there. Raises ValidationError for a name that is taken."""
    if persons.accounts().filter(username=arguments.person).exists():
        raise ValidationError({"person": _("There is an account of this name already.")})
    warnings = []
    if arguments.role == Role.ADMIN:
        warnings.append(_("An administrator may do everything here, and give every role to everybody."))
    return Preview((Change("", {}, {"role": arguments.role}),), None, tuple(warnings))


def carry_out(arguments: AddPerson, preview: Preview[None]) -> Iterator[ItemOutcome]:
    """Makes the account."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    with transaction.atomic():
        person = persons.accounts().create_user(username=arguments.person, password=password)
        persons.give_group(person, arguments.role)
    yield preview.changes[0].done(secret=password)


def undo(arguments: AddPerson, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns what shuts the account again: it is not deleted, since the audit names it."""
    if outcomes[0].state != ItemState.DONE:
        return None
    return Undo("set_person_active", {"person": arguments.person, "active": "no"})


DECLARATION: InstallationAction[AddPerson, None] = InstallationAction(
    name="add_person",
    title=gettext_lazy("Add a person"),
    permission="auth.add_user",
    arguments=AddPerson,
    subject="person",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
)
