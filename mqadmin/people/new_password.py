"""Makes a new password for an account and shows it once; the old one and all log-ins end."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import ActionRefused, Change, InstallationAction, ItemOutcome, Preview
from mqadmin.people import log_ins, persons
from mqadmin.people.add_person import PASSWORD_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPassword:
    """The account."""

    person: Annotated[str, persons.name_field(label=gettext_lazy("Person"))]


def preview(arguments: NewPassword) -> Preview[User]:
    """Returns the change. Raises ValidationError for an unknown name; ActionRefused where no password is to be made.

    An administrator is not to become a superuser, nor to open a second way into an account of single sign-on.
    """
    person = persons.find(arguments.person)
    if person.is_superuser:
        words = _("%(person)s is a superuser, whose password is set on the server: manage.py changepassword %(person)s")
        raise ActionRefused(words % {"person": person.get_username()})
    if not person.has_usable_password():
        words = _("%(person)s logs in by single sign-on and has no password here.")
        raise ActionRefused(words % {"person": person.get_username()})
    count = log_ins.open_log_ins(person.pk).count()
    warnings = (
        _("The present password ends, and %(count)d log-ins with it. Tokens and jobs stay.") % {"count": count},
    )
    return Preview((Change("", {"password": "present"}, {"password": "new"}),), person, warnings)


def carry_out(_arguments: NewPassword, preview: Preview[User]) -> Iterator[ItemOutcome]:
    """Sets it, and ends the log-ins."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    with transaction.atomic():
        preview.plan.set_password(password)
        preview.plan.save(update_fields=["password"])
        log_ins.end(list(log_ins.open_log_ins(preview.plan.pk)))
    yield preview.changes[0].done(secret=password)


DECLARATION: InstallationAction[NewPassword, User] = InstallationAction(
    name="new_password",
    title=gettext_lazy("Make a new password"),
    permission="auth.change_user",
    arguments=NewPassword,
    subject="person",
    preview=preview,
    carry_out=carry_out,
)
