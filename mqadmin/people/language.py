"""The language of pages: the one that the person chose, else the browser's (cookie, then Accept-Language).

A choice is kept with the account, so that the next log-in on another machine has it, and in a cookie, for the log-in
page. Between log-ins the session carries it: no request asks the database for it.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest
from django.middleware.locale import LocaleMiddleware
from django.utils import translation

from mqadmin.people.models import ChosenLanguage

SESSION_KEY = "language"


class PersonLocaleMiddleware(LocaleMiddleware):
    """Django's own, for which a person's choice comes before what the browser asks for."""

    def process_request(self, request: HttpRequest) -> None:
        """Activates the language in which the request is answered."""
        super().process_request(request)
        try:
            chosen = request.session.get(SESSION_KEY, "")
        except DatabaseError:
            # The page itself says what is wrong, in the browser's language.
            return
        if is_offered(chosen):
            translation.activate(chosen)
            request.LANGUAGE_CODE = translation.get_language()


def is_offered(code: str) -> bool:
    """Tells whether pages can be shown in the language."""
    return code in dict(settings.LANGUAGES)


def choose(request: HttpRequest, code: str) -> None:
    """Keeps a language of those that are offered for the person's account and for this log-in."""
    if request.user.is_authenticated:
        ChosenLanguage.objects.update_or_create(person=request.user, defaults={"code": code})
        request.session[SESSION_KEY] = code


def remember(request: HttpRequest, user: Any, **_: Any) -> None:
    """Gives a new log-in the language that its account has: a receiver of Django's `user_logged_in`."""
    chosen = ChosenLanguage.objects.filter(person=user).first()
    if chosen is not None:
        request.session[SESSION_KEY] = chosen.code
