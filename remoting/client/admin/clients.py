"""The clients that are connected to one broker: members of groups, and what a member says of itself."""

from __future__ import annotations

from remoting.client.admin.partial import Partial, ask_each
from remoting.client.admin.requests import Requests, read_aside
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.consume_directly import ConsumeDirectlyResult
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.groups import (
    ConsumerConnection,
    ConsumerIds,
    GroupSubscription,
    ProducerConnection,
    ProducerTable,
)
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.progress import read_group_progress
from remoting.wire.bodies.running_info import ConsumerRunningInfo, read_running_info
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.headers.groups import (
    ConsumeDirectlyHeader,
    ConsumerGroupHeader,
    GetConsumerRunningInfoHeader,
    GroupTopicHeader,
    ProducerGroupHeader,
)
from remoting.wire.headers.offsets import ConsumerStatusHeader

_NO_CONSUMER = "no consumer for this group"
# Of 204: how Apache says that no producer of the group is connected.
_NO_PRODUCER = "not exist"
# Members whose running info is asked for in one round; a group of more is told in turns.
MEMBERS_ASKED_MAX = 256
# Twice what one dead member takes, since few are asked at once.
MEMBERS_ROUND_MS = 24_000


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
        self,
        address: str,
        group: str,
        client_id: str,
        *,
        with_stacks: bool = False,
        turn_timeout_ms: int | None = None,
    ) -> ConsumerRunningInfo:
        """Returns the running info of the member `client_id` (307); the broker relays request and response.

        `with_stacks`: the stack traces of all its threads, too, in `jstack`; the member stops for them.
        `turn_timeout_ms`: other than the limits'.
        """
        header = GetConsumerRunningInfoHeader(consumer_group=group, client_id=client_id, jstack_enable=with_stacks)
        about = f"client {client_id!r} of group {group!r}"
        code = RequestCode.GET_CONSUMER_RUNNING_INFO
        answer = await self._requests.ask_relayed(address, code, header, about=about, turn_timeout_ms=turn_timeout_ms)
        return await read_aside(read_running_info, answer.body)

    async def running_infos(
        self, address: str, group: str, client_ids: list[str], *, timeout_ms: int = MEMBERS_ROUND_MS
    ) -> Partial[str, ConsumerRunningInfo]:
        """Returns by client id what each of the first MEMBERS_ASKED_MAX members says, or why it doesn't."""
        wanted = client_ids[:MEMBERS_ASKED_MAX]
        return await ask_each(wanted, lambda one: self.running_info(address, group, one), timeout_ms=timeout_ms)

    async def progress(
        self, address: str, group: str, topic: str, client_id: str | None = None
    ) -> dict[str, dict[MessageQueue, int]]:
        """Returns by client id the offsets that the members themselves know for their queues of the topic (223).

        Asks one member, or one after the other all of them. Java's clients answer, C++'s don't.
        """
        header = ConsumerStatusHeader(topic=topic, group=group, client_addr=client_id)
        code = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
        answer = await self._requests.ask_relayed(address, code, header, about=f"group {group!r} on topic {topic!r}")
        return read_group_progress(answer.body)

    async def consume_directly(
        self, address: str, group: str, client_id: str, message_id: str, topic: str | None = None
    ) -> ConsumeDirectlyResult:
        """Makes the member's listener consume one message now, and returns what it made of it (309).

        `message_id` is an offset message id of this broker. Nothing is sent anew, and no offset changes.
        """
        header = ConsumeDirectlyHeader(consumer_group=group, client_id=client_id, msg_id=message_id, topic=topic)
        about = f"client {client_id!r} of group {group!r}"
        answer = await self._requests.ask_relayed(address, RequestCode.CONSUME_MESSAGE_DIRECTLY, header, about=about)
        return read_body(ConsumeDirectlyResult, answer.body)

    async def subscription(self, address: str, group: str, topic: str) -> GroupSubscription:
        """Returns the group's one subscription of the topic as the broker keeps it (345); none of an offline group."""
        header, code = GroupTopicHeader(group=group, topic=topic), RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER
        answer = await self._requests.ask(address, code, header, about=f"group {group!r} on topic {topic!r}")
        return read_body(GroupSubscription, answer.body)

    async def producers(self, address: str, group: str) -> ProducerConnection | None:
        """Returns the producers of a producer group that this broker knows (204); None when none is connected.

        A topic's producers: those on the brokers of its route. Which topics a producer sends to, brokers don't know.
        """
        header, code = ProducerGroupHeader(producer_group=group), RequestCode.GET_PRODUCER_CONNECTION_LIST
        try:
            answer = await self._requests.ask(address, code, header, about=f"producer group {group!r}")
        except BrokerRefused as error:
            if error.code == ResponseCode.SYSTEM_ERROR and _NO_PRODUCER in error.remark:
                return None
            raise
        return read_body(ProducerConnection, answer.body)

    async def all_producers(self, address: str) -> ProducerTable:
        """Returns every connected producer by its group (328). Raises NotSupported with Apache's old brokers."""
        answer = await self._requests.ask(address, RequestCode.GET_ALL_PRODUCER_INFO)
        return read_body(ProducerTable, answer.body)
