"""The consumer groups of one broker: their settings."""

from __future__ import annotations

from remoting.client.admin.requests import Requests
from remoting.client.admin.table_pages import GROUP_PAGES
from remoting.wire.bodies.document import read_body, write_body
from remoting.wire.bodies.groups import SubscriptionGroupConfig, SubscriptionGroupTable
from remoting.wire.codes import RequestCode


class Groups:
    """Every broker has its own settings of a group."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def table(self, address: str) -> SubscriptionGroupTable:
        """Returns all groups of a broker (201)."""
        table = SubscriptionGroupTable()
        async for page in self._requests.pages(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, GROUP_PAGES):
            part = read_body(SubscriptionGroupTable, page)
            table.data_version = part.data_version
            table.forbidden_table.update(part.forbidden_table)
            table.subscription_group_table.update(part.subscription_group_table)
        return table

    async def create(self, address: str, config: SubscriptionGroupConfig) -> None:
        """Creates the group, or changes it to `config` (200)."""
        code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        await self._requests.ask(address, code, body=write_body(config), about=f"group {config.group_name!r}")
