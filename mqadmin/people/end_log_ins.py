"""Ends the log-ins of a person: all, or one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview
from mqadmin.people import log_ins, persons
from mqadmin.people.models import LogIn


@dataclass(frozen=True, slots=True, kw_only=True)
class EndLogIns:
    """The person, and the number of one log-in; "" for all."""

    person: Annotated[str, persons.name_field(label=gettext_lazy("Person"))]
    log_in: Annotated[
        str,
        forms.RegexField(
            r"^\d{1,18}$", label=gettext_lazy("Log-in"), help_text=gettext_lazy("Its number; empty: all.")
        ),
    ] = ""


def preview(arguments: EndLogIns) -> Preview[list[LogIn]]:
    """Returns one change per log-in that ends. Raises ValidationError for one that is not there."""
    person = persons.find(arguments.person)
    open_ones = log_ins.open_log_ins(person.pk)
    found = list(open_ones.filter(pk=arguments.log_in) if arguments.log_in else open_ones)
    if arguments.log_in and not found:
        raise ValidationError({"log_in": _("This log-in has ended.")})
    changes = [Change(f"{one.pk}", {"address": one.address, "user_agent": one.user_agent}, {}) for one in found]
    return Preview(tuple(changes), found)


def carry_out(_arguments: EndLogIns, preview: Preview[list[LogIn]]) -> Iterator[ItemOutcome]:
    """Deletes the sessions."""
    log_ins.end(preview.plan)
    yield from (change.done() for change in preview.changes)


DECLARATION: InstallationAction[EndLogIns, list[LogIn]] = InstallationAction(
    name="end_log_ins",
    title=gettext_lazy("End log-ins"),
    permission="auth.change_user",
    arguments=EndLogIns,
    subject="person",
    preview=preview,
    carry_out=carry_out,
)
