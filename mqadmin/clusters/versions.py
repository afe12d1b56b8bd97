"""Writes the version of a broker or client in words, also where it is not known yet."""

from __future__ import annotations

from remoting.wire import versions


def version_name(number: int | None) -> str:
    """Returns `5.4.0` for 493, "" when not known."""
    return "" if number is None else versions.version_name(number)
