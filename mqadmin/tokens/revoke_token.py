"""Revokes an API token: from then on it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import ActionRefused, Change, InstallationAction, ItemOutcome, Preview
from mqadmin.tokens.create_token import PERSON_CHARS_MAX
from mqadmin.tokens.models import NAME_CHARS_MAX, ApiToken


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeToken:
    """The token `token` of `person`."""

    token: Annotated[str, forms.CharField(label=gettext_lazy("Name"), max_length=NAME_CHARS_MAX)]
    person: Annotated[str, forms.CharField(label=gettext_lazy("Person"), max_length=PERSON_CHARS_MAX)]


def preview(arguments: RevokeToken) -> Preview[ApiToken]:
    """Returns the end of the token. Raises ActionRefused where the person has none of this name."""
    names = {"person": arguments.person, "token": arguments.token}
    found = ApiToken.objects.filter(person__username=arguments.person, name=arguments.token, revoked_at=None).first()
    if found is None:
        raise ActionRefused(_("%(person)s has no token %(token)s; it may have been revoked before.") % names)
    before = {**names, "role": found.role, "clusters": found.clusters}
    return Preview((Change("", before, {}),), found)


def carry_out(_arguments: RevokeToken, preview: Preview[ApiToken]) -> Iterator[ItemOutcome]:
    """Ends the token."""
    (change,) = preview.changes
    is_revoked = ApiToken.objects.filter(pk=preview.plan.pk, revoked_at=None).update(revoked_at=timezone.now())
    yield change.done() if is_revoked else change.unchanged()


DECLARATION: InstallationAction[RevokeToken, ApiToken] = InstallationAction(
    name="revoke_token",
    title=gettext_lazy("Revoke an API token"),
    permission="mq_tokens.delete_apitoken",
    arguments=RevokeToken,
    subject="token",
    own_argument="person",
    preview=preview,
    carry_out=carry_out,
)
