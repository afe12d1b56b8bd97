"""The clients that are connected to one broker: members of groups, and what a member says of itself."""

from __future__ import annotations

from remoting.client.admin.requests import Requests
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.groups import ConsumerConnection, ConsumerIds
from remoting.wire.bodies.running_info import ConsumerRunningInfo, read_running_info
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.headers.groups import ConsumerGroupHeader, GetConsumerRunningInfoHeader

_NO_CONSUMER = "no consumer for this group"


class Clients:
    """A client sends its heartbeats to every broker, so each of them knows all; answers may differ for seconds."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def consumers(self, address: str, group: str) -> ConsumerConnection | None:
        """Returns the members of the group that this broker knows (203); None when none is connected."""
        header = ConsumerGroupHeader(consumer_group=group)
        code = RequestCode.GET_CONSUMER_CONNECTION_LIST
        try:
            answer = await self._requests.ask(address, code, header, about=f"group {group!r}")
        except BrokerRefused as error:
            if error.code == ResponseCode.CONSUMER_NOT_ONLINE:
                return None
            raise
        return read_body(ConsumerConnection, answer.body)

    async def consumer_ids(self, address: str, group: str) -> list[str]:
        """Returns the client ids of the members, in no order (38); empty when none is connected."""
        header = ConsumerGroupHeader(consumer_group=group)
        code = RequestCode.GET_CONSUMER_LIST_BY_GROUP
        try:
            answer = await self._requests.ask(address, code, header, about=f"group {group!r}")
        except BrokerRefused as error:
            if error.code == ResponseCode.SYSTEM_ERROR and _NO_CONSUMER in error.remark:
                return []
            raise
        return read_body(ConsumerIds, answer.body).consumer_id_list

    async def running_info(
        self, address: str, group: str, client_id: str, *, with_stacks: bool = False
    ) -> ConsumerRunningInfo:
        """Returns the running info of the member `client_id` (307); the broker relays request and response.

        `with_stacks`: the stack traces of all its threads, too, in `jstack`; the member stops for them.
        """
        header = GetConsumerRunningInfoHeader(consumer_group=group, client_id=client_id, jstack_enable=with_stacks)
        about = f"client {client_id!r} of group {group!r}"
        code = RequestCode.GET_CONSUMER_RUNNING_INFO
        answer = await self._requests.ask_relayed(address, code, header, about=about)
        return read_running_info(answer.body)
