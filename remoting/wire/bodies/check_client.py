"""The body of CHECK_CLIENT_CONFIG (46, Java `CheckClientRequestBody`): one subscription that a consumer starts with."""

from __future__ import annotations

from typing import Any

import msgspec

from remoting.wire.bodies.document import Document


class CheckClientBody(Document, kw_only=True):
    """`subscription_data` in parts, since only its expression counts: `expressionType` and `subString`."""

    client_id: str = ""
    group: str = ""
    subscription_data: dict[str, Any] = msgspec.field(default_factory=dict)
