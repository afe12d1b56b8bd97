"""Settings by name, as 25, 26, 318 and 319 carry them."""

from __future__ import annotations

from collections.abc import Mapping

from remoting.wire.command import Body
from remoting.wire.java_properties import read_plain_properties, write_escaped_properties


def read_settings(body: Body) -> dict[str, str]:
    """Reads the settings that a server told. Bytes that are no UTF-8 become U+FFFD."""
    return read_plain_properties(bytes(body).decode("utf-8", "replace"))


def write_changes(changes: Mapping[str, str]) -> bytes:
    """Encodes changes for a server; no value can smuggle in another name."""
    return write_escaped_properties(changes).encode("ascii")
