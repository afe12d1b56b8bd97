"""Cursors: where the next page of a list begins.

A cursor holds the position of the last row that was sent, and which list in which order it belongs to. It is signed, so
that what comes back is what was given out. Rows may move while a caller pages (lag changes): then one may be seen twice
or not at all; a list sorted by name has no such gaps.
"""

from __future__ import annotations

from typing import Any

from django.core import signing
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError

_SALT = "mqadmin.api.cursor"
# The longest name takes four bytes a character, and base64 a third more.
CURSOR_CHARS_MAX = 4000


def write_cursor(place: str, position: list[Any]) -> str:
    """Returns the cursor of a position (plain JSON) in the list `place`."""
    return signing.dumps([place, position], salt=_SALT, compress=True)


def read_cursor(place: str, cursor: str) -> list[Any]:
    """Returns the position of a cursor. Raises ValidationError for one of another list, or no cursor at all."""
    try:
        there, position = signing.loads(cursor, salt=_SALT)
    except (signing.BadSignature, ValueError) as error:
        raise ValidationError({"cursor": [_("This is no cursor: send back next_cursor as it was given.")]}) from error
    if there != place:
        words = _("This cursor belongs to another list, filter or order: begin without one.")
        raise ValidationError({"cursor": [words]})
    return list(position)
