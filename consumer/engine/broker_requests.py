"""Answers to what brokers ask of a member (Java `ClientRemotingProcessor`).

Each handler acts at once or sets a flag: it runs while a connection is being read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from consumer.engine.consume_directly import DirectConsumption, TooManyDirectly
from consumer.engine.offset_store import OffsetStore
from consumer.engine.owned_queues import OwnedQueues
from consumer.engine.rebalancer import Rebalancer
from consumer.engine.stacks import stacks
from remoting.client.connections import RequestHandler
from remoting.connection import Connection
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.progress import read_reset, write_client_progress
from remoting.wire.bodies.running_info import ConsumerRunningInfo, write_running_info
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import WireError
from remoting.wire.headers.groups import ConsumeDirectlyHeader, GetConsumerRunningInfoHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.stored_message import decode_messages


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRequests:
    group: str
    rebalancer: Rebalancer
    owned: OwnedQueues
    offsets: OffsetStore
    running_info: Callable[[], ConsumerRunningInfo]
    directly: DirectConsumption

    def handlers(self) -> dict[int, RequestHandler]:
        """Returns the handler of each request code, for a client's connections."""
        return {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._notify_consumer_ids_changed,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._get_consumer_running_info,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._get_consumer_status,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._reset_consumer_offset,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._consume_directly,
        }

    def _notify_consumer_ids_changed(self, _: Connection, request: Command) -> None:
        if request.ext_fields.get("consumerGroup", self.group) == self.group:
            self.rebalancer.wake()

    def _get_consumer_running_info(self, _: Connection, request: Command) -> Command:
        header = read_header(GetConsumerRunningInfoHeader, request.ext_fields)
        if header.consumer_group != self.group:
            return self._no_such_group(request, header.consumer_group)
        info = self.running_info()
        if header.jstack_enable:
            info.jstack = stacks()
        return response(request, ResponseCode.SUCCESS, body=write_running_info(info))

    async def _consume_directly(self, _: Connection, request: Command) -> Command:
        try:
            header = read_header(ConsumeDirectlyHeader, request.ext_fields)
            if header.consumer_group != self.group:
                return self._no_such_group(request, header.consumer_group)
            messages = decode_messages(request.body)
            if not messages:
                return response(request, ResponseCode.SYSTEM_ERROR, "the request has no message to consume")
            result = await self.directly.consume(messages[0], request.ext_fields.get("brokerName", ""))
        except WireError as error:
            return response(request, ResponseCode.SYSTEM_ERROR, str(error))
        except TooManyDirectly as error:
            return response(request, ResponseCode.SYSTEM_BUSY, str(error))
        return response(request, ResponseCode.SUCCESS, body=write_body(result))

    def _no_such_group(self, request: Command, group: str) -> Command:
        remark = f"The Consumer Group <{group}> not exist in this consumer"
        return response(request, ResponseCode.SYSTEM_ERROR, remark)

    def _get_consumer_status(self, _: Connection, request: Command) -> Command:
        queues = self.owned.of_topic(request.ext_fields.get("topic", ""))
        held = {queue: offset for queue in queues if (offset := self.offsets.held_offset(queue)) is not None}
        return response(request, ResponseCode.SUCCESS, body=write_client_progress(held))

    def _reset_consumer_offset(self, _: Connection, request: Command) -> Command | None:
        if request.ext_fields.get("group") != self.group:
            return None
        try:
            offsets = read_reset(request.body)
        except WireError as error:
            return response(request, ResponseCode.SYSTEM_ERROR, str(error))
        self.owned.reset(offsets)
        return response(request, ResponseCode.SUCCESS)
