"""The viewer's theme: light, dark, or the system's. Kept in a cookie: it belongs to the screen, not to the account."""

from __future__ import annotations

from django.http import HttpRequest

THEME_COOKIE = "mqadmin_theme"
THEME_COOKIE_AGE_S = 365 * 86_400
# "" follows the system and needs no cookie
THEMES = ("", "light", "dark")


def theme_of(request: HttpRequest) -> str:
    """The chosen theme, "" when the system's is followed."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return theme if theme in THEMES else ""
