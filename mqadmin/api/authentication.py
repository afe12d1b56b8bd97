"""Tokens in `Authorization: Bearer`: one query a request, the last use noted once a minute.

Attempts with a token that is not valid are counted by address, before the database is asked: the limits of
`throttles.py` count by token or account, and such an attempt has neither.
"""

from __future__ import annotations

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from mqadmin.tokens import guesses
from mqadmin.tokens.models import ApiToken
from mqadmin.tokens.selectors import token_of_secret


class TokenAuthentication(BaseAuthentication):
    """A person by one of their tokens; `request.auth` is the token."""

    def authenticate(self, request: Request) -> tuple[object, ApiToken] | None:
        scheme, _space, secret = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        address = request.META.get("REMOTE_ADDR", "")
        if (wait_s := guesses.wait_after_failures_s(address)) is not None:
            raise Throttled(wait=wait_s)
        token = token_of_secret(secret.strip())
        if token is None:
            guesses.count_failure(address)
            raise AuthenticationFailed(_("This token is not valid: it is unknown, revoked or expired."))
        token.note_use(timezone.now(), address)
        return token.person, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="mqadmin"'
