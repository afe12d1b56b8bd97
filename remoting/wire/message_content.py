"""What can be read from a message's body and properties, whoever got it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from remoting.wire.properties import Property


class MessageContent(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The base of messages. `born_ms`: ms since the epoch, by the sender's clock."""

    topic: str
    body: bytes
    properties: Mapping[str, str]
    born_ms: int = 0

    @property
    def text(self) -> str:
        """Returns the body as UTF-8 text. Raises UnicodeDecodeError."""
        return self.body.decode()

    def json(self) -> Any:
        """Returns the body parsed as JSON. Raises ValueError."""
        return json.loads(self.body)

    @property
    def tags(self) -> str | None:
        return self.properties.get(Property.TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.properties.get(Property.KEYS, "").split())

    @property
    def born_at(self) -> datetime:
        """Returns when the sender made it, by the sender's clock."""
        return datetime.fromtimestamp(self.born_ms / 1000, UTC)
