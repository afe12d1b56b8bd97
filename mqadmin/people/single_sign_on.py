"""Single sign-on by OpenID Connect, through django-allauth; on where MQADMIN_OIDC_URL is set (`settings.py`).

Somebody who comes for the first time gets an account of the name that the provider says, with the role of
MQADMIN_OIDC_ROLE. An account that is here already, made by hand, is never taken over: whoever has the same name at the
provider gets another one. E-mail addresses are not kept.
"""

from __future__ import annotations

from typing import Any

from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from mqadmin.people import persons

PROVIDER = "sso"


class Adapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # django-allauth has no types
    """What differs from allauth's own rules."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:  # noqa: ARG002 - allauth's names
        """Lets everybody in whom the provider lets in: whoever may not is given no role, or kept out there."""
        return True

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:  # noqa: ARG002 - allauth's names
        """Forgets the addresses: nothing here is sent by mail, and one that is known must not stop a log-in."""
        sociallogin.email_addresses = []
        if not sociallogin.is_existing:
            sociallogin.user.email = ""

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> Any:
        """Saves a new account without a password, and with the role for newcomers."""
        with transaction.atomic():
            user = super().save_user(request, sociallogin, form)
            persons.give_group(user, settings.MQADMIN_OIDC_ROLE)
        return user
