"""Reads tokens, for pages and REST. Nobody reads those of others, but who may change them."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils import timezone

from mqadmin.tokens.models import ApiToken, digest_of


def tokens_of(person: AbstractBaseUser | AnonymousUser) -> list[ApiToken]:
    """Returns the person's tokens that are not revoked, by name; expired ones too."""
    return list(ApiToken.objects.filter(person=person.pk, revoked_at=None).order_by("name"))


def token_of_secret(secret: str) -> ApiToken | None:
    """Returns the token with this secret while it is valid."""
    found = ApiToken.objects.select_related("person").filter(digest=digest_of(secret)).first()
    return found if found is not None and found.is_valid(timezone.now()) else None
