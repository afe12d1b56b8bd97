"""The text of an exception of anybody's code: asking for it, and writing it down, must not be a second failure."""

from __future__ import annotations

NO_TEXT = "(an exception that cannot say its text)"


def error_text(error: BaseException) -> str:
    """Returns `str(error)`, or NO_TEXT where its class has a `__str__` that raises or returns no text.

    Halves of surrogate pairs, which no file, database or header takes, become "?".
    """
    try:
        return str(error).encode("utf-8", "replace").decode()
    except BaseException:
        return NO_TEXT
