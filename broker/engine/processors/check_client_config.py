"""CHECK_CLIENT_CONFIG (46): whether a subscription's expression can be used here (asked before a consumer starts)."""

from __future__ import annotations

from broker.engine.filters.subscriptions import SubscriptionFilters
from broker.engine.serving.requests import Request
from remoting.wire import lenient_json
from remoting.wire.bodies.check_client import CheckClientBody
from remoting.wire.bodies.document import convert
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


class CheckClientConfig:
    def __init__(self, filters: SubscriptionFilters) -> None:
        self._filters = filters

    def __call__(self, request: Request) -> Command:
        """Raises MessageError, with the code of an expression that cannot be read or of a kind that is off."""
        body = convert(CheckClientBody, lenient_json.loads(request.command.body))
        kind, text = body.subscription_data.get("expressionType"), body.subscription_data.get("subString")
        self._filters.check(str(kind or ""), str(text or ""))
        return response(request.command, ResponseCode.SUCCESS)
