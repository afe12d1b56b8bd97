"""The viewer's theme: light, dark, or the system's. Kept in a cookie: it belongs to the screen, not to the account."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from mqadmin.console.going_back import address_to_go_back_to

THEME_COOKIE = "mqadmin_theme"
THEME_COOKIE_AGE_S = 365 * 86_400
# "" follows the system and needs no cookie
THEMES = ("", "light", "dark")


def theme_of(request: HttpRequest) -> str:
    """Returns the chosen theme; "" where the page follows the system's."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return theme if theme in THEMES else ""


@login_not_required
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Sets the cookie and returns to the page on which the theme was chosen."""
    response = redirect(address_to_go_back_to(request) or "/")
    chosen = request.POST.get("theme", "")
    if chosen in THEMES and chosen:
        response.set_cookie(
            THEME_COOKIE, chosen, max_age=THEME_COOKIE_AGE_S, samesite="Lax", httponly=True, secure=request.is_secure()
        )
    else:
        response.delete_cookie(THEME_COOKIE, samesite="Lax")
    return response
