"""GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201): all consumer groups with their settings.

Always complete, never in pages; the total says so to a caller that asks for pages.
"""

from __future__ import annotations

from broker.engine.groups.group_configs import Groups
from broker.engine.serving.requests import Request
from remoting.wire.bodies.document import write_body
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


class GetAllSubscriptionGroupConfig:
    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def __call__(self, request: Request) -> Command:
        total = {"totalGroupNum": str(len(self._groups.table.subscription_group_table))}
        return response(request.command, ResponseCode.SUCCESS, ext_fields=total, body=write_body(self._groups.table))
