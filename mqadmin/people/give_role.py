"""Gives a person a role, for all clusters or for some, or takes it away."""

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
    ItemState,
    Preview,
    Undo,
)
from mqadmin.clusters.models import Cluster
from mqadmin.people import persons
from mqadmin.people.models import ClusterRole
from mqadmin.people.roles import Role
from mqadmin.people.words import ROLE_CHOICES


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveRole:
    """The role that the person has afterwards, "" for none: on each of `clusters`, or on all where none is named."""

    person: Annotated[str, persons.name_field(label=gettext_lazy("Person"))]
    role: Annotated[str, forms.ChoiceField(label=gettext_lazy("Role"), choices=ROLE_CHOICES)] = ""
    clusters: Annotated[
        tuple[str, ...],
        forms.MultipleChoiceField(
            label=gettext_lazy("Clusters"),
            help_text=gettext_lazy("None chosen: all of them, and this console itself."),
            widget=forms.CheckboxSelectMultiple,
        ),
    ] = ()


def preview(arguments: GiveRole) -> Preview[User]:
    """Returns the roles before and after. Raises ValidationError; ActionRefused for the last administrator."""
    person = persons.find(arguments.person)
    if person.is_superuser:
        words = _(
            "%(person)s is a superuser, who may do everything whatever the roles: that is set by manage.py alone."
        )
        raise ActionRefused(words % {"person": person.get_username()})
    if arguments.clusters:
        there = dict(ClusterRole.objects.filter(person=person).values_list("cluster__name", "role"))
        changes = [_change(name, there.get(name, ""), arguments.role) for name in arguments.clusters]
        return Preview(tuple(changes), person)
    before = _group_role(person)
    if before == Role.ADMIN and arguments.role != Role.ADMIN and persons.is_last_administrator(person):
        words = _("%(person)s is the last administrator: make somebody else one first.")
        raise ActionRefused(words % {"person": person.get_username()})
    warnings = []
    if arguments.role == Role.ADMIN and before != Role.ADMIN:
        warnings.append(_("An administrator may do everything here, and give every role to everybody."))
    return Preview((_change("", before, arguments.role),), person, tuple(warnings))


def carry_out(arguments: GiveRole, preview: Preview[User]) -> Iterator[ItemOutcome]:
    """Writes the role. Who is logged in has it from the next page on."""
    with transaction.atomic():
        if not arguments.clusters:
            persons.give_group(preview.plan, arguments.role)
        for name in arguments.clusters:
            _give_on(preview.plan, Cluster.objects.get(name=name), arguments.role)
    yield from (change.done() if change.is_change else change.unchanged() for change in preview.changes)


def undo(arguments: GiveRole, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the same with the role before, where it was the same everywhere."""
    before = {str((one.before or {}).get("role", "")) for one in outcomes}
    if len(before) != 1 or all(one.state == ItemState.UNCHANGED for one in outcomes):
        return None
    (role,) = before
    clusters = {"clusters": list(arguments.clusters)} if arguments.clusters else {}
    return Undo(DECLARATION.name, {"person": arguments.person, "role": role, **clusters})


def adapt(form: forms.Form, subject: str) -> None:
    """Offers the clusters, and shows the role that the person has on all of them."""
    names = list(Cluster.objects.order_by("name").values_list("name", flat=True))
    form.fields["clusters"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
    person = persons.accounts().filter(username=subject).first() if subject else None
    if person is not None:
        form.fields["role"].initial = _group_role(person)


def _change(item: str, before: str, after: str) -> Change:
    return Change(item, {"role": before} if before else {}, {"role": after} if after else {})


def _group_role(person: User) -> str:
    names = set(person.groups.filter(name__in=list(Role)).values_list("name", flat=True))
    return next((role.value for role in reversed(Role) if role.value in names), "")


def _give_on(person: User, cluster: Cluster, role: str) -> None:
    if role:
        ClusterRole.objects.update_or_create(person=person, cluster=cluster, defaults={"role": role})
    else:
        ClusterRole.objects.filter(person=person, cluster=cluster).delete()


DECLARATION: InstallationAction[GiveRole, User] = InstallationAction(
    name="give_role",
    title=gettext_lazy("Give a role"),
    permission="auth.change_user",
    arguments=GiveRole,
    subject="person",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
