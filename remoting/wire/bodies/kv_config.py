"""The name server's values by namespace and key: 219, and config/kvConfig.json."""

from __future__ import annotations

from remoting.wire.bodies.document import Document


class KVTable(Document, kw_only=True):
    """219 GET_KVLIST_BY_NAMESPACE."""

    table: dict[str, str] = {}  # noqa: RUF012 - msgspec copies a default per instance


class KVConfigFile(Document, kw_only=True):
    """`KVConfigSerializeWrapper`: namespace → key → value."""

    config_table: dict[str, dict[str, str]] = {}  # noqa: RUF012
