"""CHECK_CLIENT_CONFIG (46): whether a subscription's expression can be used here (asked before a consumer starts)."""

from __future__ import annotations

from typing import Any

import msgspec

from broker.engine.requests import Request
from remoting.wire import lenient_json
from remoting.wire.bodies.document import Document, convert
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError

TAG = "TAG"


class _CheckClient(Document, kw_only=True):
    """`subscription_data` is read in parts: only the kind of its expression counts."""

    group: str = ""
    subscription_data: dict[str, Any] = msgspec.field(default_factory=dict)


class CheckClientConfig:
    def __call__(self, request: Request) -> Command:
        """Raises MessageError in RocketMQ's words for what is no tag expression."""
        body = convert(_CheckClient, lenient_json.loads(request.command.body))
        kind = body.subscription_data.get("expressionType") or TAG
        if kind != TAG:
            raise MessageError(
                f"The broker does not support consumer to filter message by {kind}", ResponseCode.SYSTEM_ERROR
            )
        return response(request.command, ResponseCode.SUCCESS)
