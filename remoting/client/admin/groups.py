"""The consumer groups of one broker: their settings, and the groups' end."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from remoting.client.admin.requests import Requests, read_aside
from remoting.client.admin.table_pages import GROUP_PAGES
from remoting.client.errors import GroupNotFound
from remoting.wire.bodies.document import convert, read_body, read_object, write_body
from remoting.wire.bodies.groups import SubscriptionGroupConfig, SubscriptionGroupTable
from remoting.wire.codes import RequestCode
from remoting.wire.headers.groups import DeleteGroupHeader


class GroupChange(msgspec.Struct, kw_only=True, frozen=True, rename="camel", omit_defaults=True):
    """Fields of `SubscriptionGroupConfig` to change; None leaves one as it is.

    `consume_enable` False stops a group's consumption on the broker; `retry_max_times`: after so many retries a message
    becomes a dead letter.
    """

    consume_enable: bool | None = None
    consume_broadcast_enable: bool | None = None
    consume_from_min_enable: bool | None = None
    consume_message_orderly: bool | None = None
    consume_timeout_minute: int | None = None
    notify_consumer_ids_changed_enable: bool | None = None
    retry_max_times: int | None = None
    retry_queue_nums: int | None = None
    broker_id: int | None = None
    which_broker_when_consume_slowly: int | None = None


class Groups:
    """Every broker has its own settings of a group."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def table(self, address: str) -> SubscriptionGroupTable:
        """Returns all groups of a broker (201)."""
        table = SubscriptionGroupTable()
        async for page in self._requests.pages(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, GROUP_PAGES):
            part = await read_aside(partial(read_body, SubscriptionGroupTable), page)
            table.data_version = part.data_version
            table.forbidden_table.update(part.forbidden_table)
            table.subscription_group_table.update(part.subscription_group_table)
        return table

    async def create(self, address: str, config: SubscriptionGroupConfig) -> None:
        """Creates the group, or changes it to `config` (200)."""
        code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        await self._requests.ask(address, code, body=write_body(config), about=f"group {config.group_name!r}")

    async def config(self, address: str, group: str) -> SubscriptionGroupConfig | None:
        """Returns the group's settings on a broker (201); None where the broker doesn't have it.

        Read from the whole table: the request for one group (352) creates a group that isn't there.
        """
        found = await self._raw_config(address, group)
        return None if found is None else convert(SubscriptionGroupConfig, found)

    async def change(self, address: str, group: str, change: GroupChange) -> SubscriptionGroupConfig:
        """Changes some settings of a group and returns all as they are then (201, 200).

        All others stay, also those that this client doesn't know. Who changes the same group at the same time may undo
        it: RocketMQ knows no condition on a change. Raises GroupNotFound.
        """
        found = await self._raw_config(address, group)
        if found is None:
            raise GroupNotFound(address, group)
        changed = found | msgspec.to_builtins(change)
        # Sent attributes are changes ("+key"); without any the broker keeps those that it has.
        body = write_body(changed | {"attributes": {}})
        code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        await self._requests.ask(address, code, body=body, about=f"group {group!r}")
        return convert(SubscriptionGroupConfig, changed)

    async def delete(self, address: str, group: str, *, clean_offsets: bool) -> None:
        """Deletes the group's settings, and with `clean_offsets` its progress (207); one that isn't there is no error.

        Its retry and dead-letter topics stay.
        """
        header, code = (
            DeleteGroupHeader(group_name=group, clean_offset=clean_offsets),
            RequestCode.DELETE_SUBSCRIPTIONGROUP,
        )
        await self._requests.ask(address, code, header, about=f"group {group!r}")

    async def _raw_config(self, address: str, group: str) -> dict[str, Any] | None:
        async for page in self._requests.pages(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, GROUP_PAGES):
            wrapper = await read_aside(partial(read_object, "SubscriptionGroupWrapper"), page)
            table = wrapper.get("subscriptionGroupTable", {})
            found = convert(dict[str, dict[str, Any]], table).get(group)
            if found is not None:
                return found
        return None
