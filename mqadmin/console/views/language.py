"""The viewer's language: kept with the account, and in a cookie for pages that nobody is logged in to."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from mqadmin.console.going_back import address_to_go_back_to
from mqadmin.people.language import choose, is_offered


@login_not_required
@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """Keeps the choice and returns to the page on which it was made; a language that is not offered changes nothing."""
    response = redirect(address_to_go_back_to(request) or "/")
    code = request.POST.get("language", "")
    if is_offered(code):
        choose(request, code)
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            code,
            max_age=settings.LANGUAGE_COOKIE_AGE,
            samesite="Lax",
            httponly=True,
            secure=request.is_secure(),
        )
    return response
