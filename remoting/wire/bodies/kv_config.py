"""Texts by name: a broker's runtime info (28), a name server's values (219), and config/kvConfig.json."""

from __future__ import annotations

import msgspec

from remoting.wire.bodies.document import Document, convert, read_object
from remoting.wire.command import Body


class KVTable(Document, kw_only=True):
    """28 GET_BROKER_RUNTIME_INFO, 219 GET_KVLIST_BY_NAMESPACE."""

    table: dict[str, str] = {}  # noqa: RUF012 - msgspec copies a default per instance


class KVConfigFile(Document, kw_only=True):
    """`KVConfigSerializeWrapper`: namespace → key → value."""

    config_table: dict[str, dict[str, str]] = {}  # noqa: RUF012


def read_kv_table(body: Body) -> dict[str, str]:
    """Reads a table whatever its values are; what is no text becomes its JSON text. Raises BodyError."""
    table = convert(dict[str, object], read_object("KVTable", body).get("table", {}))
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode() for name, value in table.items()
    }
