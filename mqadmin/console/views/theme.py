"""Choosing a theme."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from mqadmin.console.theme import THEME_COOKIE, THEME_COOKIE_AGE_S, THEMES


@login_not_required
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Sets the cookie and goes back to where the choice was made."""
    back = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        back = "/"
    response = redirect(back)
    chosen = request.POST.get("theme", "")
    if chosen in THEMES and chosen:
        response.set_cookie(
            THEME_COOKIE, chosen, max_age=THEME_COOKIE_AGE_S, samesite="Lax", httponly=True, secure=request.is_secure()
        )
    else:
        response.delete_cookie(THEME_COOKIE, samesite="Lax")
    return response
