"""Makes an API token for a person. Its secret is in the outcome, this once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from django import forms
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import CountField
from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview, Values
from mqadmin.clusters.models import Cluster
from mqadmin.people.roles import Role
from mqadmin.tokens.models import NAME_CHARS_MAX, ApiToken, digest_of, new_secret

# A token that nobody renews should not outlive the script by years.
DAYS_MAX = 366
DAYS_DEFAULT = 90
PERSON_CHARS_MAX = 150

ROLES = (
    (Role.VIEWER.value, gettext_lazy("viewer: reads")),
    (Role.OPERATOR.value, gettext_lazy("operator: reads, and runs actions on clusters")),
    (Role.ADMIN.value, gettext_lazy("admin: everything that its person may")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateToken:
    """A token of `person`, for `clusters` (none: all of them), that ends after `days`."""

    token: Annotated[
        str,
        forms.CharField(
            label=gettext_lazy("Name"),
            help_text=gettext_lazy("What it is for: the audit shows it beside the person."),
            max_length=NAME_CHARS_MAX,
        ),
    ]
    person: Annotated[str, forms.CharField(label=gettext_lazy("Person"), max_length=PERSON_CHARS_MAX)]
    role: Annotated[str, forms.ChoiceField(label=gettext_lazy("Role"), choices=ROLES)] = Role.VIEWER.value
    clusters: Annotated[
        tuple[str, ...],
        forms.MultipleChoiceField(
            label=gettext_lazy("Clusters"),
            help_text=gettext_lazy("None chosen: all of them."),
            widget=forms.CheckboxSelectMultiple,
        ),
    ] = ()
    days: Annotated[
        int,
        CountField(label=gettext_lazy("Ends after"), help_text=gettext_lazy("Days."), min_value=1, max_value=DAYS_MAX),
    ] = DAYS_DEFAULT


def preview(arguments: CreateToken) -> Preview[Any]:
    """Returns the token that would be made. Raises ValidationError for a name that the person uses, or no person."""
    person = get_user_model().objects.filter(username=arguments.person, is_active=True).first()
    if person is None:
        raise ValidationError({"person": _("There is no active account of this name.")})
    if ApiToken.objects.filter(person=person, name=arguments.token, revoked_at=None).exists():
        raise ValidationError({"token": _("This person has a token of this name: revoke it first, or choose another.")})
    return Preview((Change("", {}, _values(arguments)),), person)


def carry_out(arguments: CreateToken, preview: Preview[Any]) -> Iterator[ItemOutcome]:
    """Makes the token."""
    secret = new_secret()
    ApiToken.objects.create(
        person=preview.plan,
        name=arguments.token,
        digest=digest_of(secret),
        role=arguments.role,
        clusters=list(arguments.clusters),
        expires_at=timezone.now() + timedelta(days=arguments.days),
    )
    yield preview.changes[0].done(secret)


def adapt(form: forms.Form, _subject: str) -> None:
    """Offers the clusters that there are."""
    names = Cluster.objects.order_by("name").values_list("name", flat=True)
    form.fields["clusters"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]


def _values(arguments: CreateToken) -> Values:
    return {
        "person": arguments.person,
        "role": arguments.role,
        "clusters": list(arguments.clusters),
        "days": arguments.days,
    }


DECLARATION: InstallationAction[CreateToken, Any] = InstallationAction(
    name="create_token",
    title=gettext_lazy("Create an API token"),
    permission="mq_tokens.add_apitoken",
    arguments=CreateToken,
    subject="token",
    own_argument="person",
    preview=preview,
    carry_out=carry_out,
    adapt=adapt,
)
