"""Answers to what brokers ask of a member (Java `ClientRemotingProcessor`).

Each handler acts at once or sets a flag: it runs while a connection is being read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from consumer.engine.offset_store import OffsetStore
from consumer.engine.owned_queues import OwnedQueues
from consumer.engine.rebalancer import Rebalancer
from remoting.client.connections import RequestHandler
from remoting.connection import Connection
from remoting.wire.bodies.progress import read_reset, write_client_progress
from remoting.wire.bodies.running_info import ConsumerRunningInfo, write_running_info
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import WireError


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRequests:
    group: str
    rebalancer: Rebalancer
    owned: OwnedQueues
    offsets: OffsetStore
    running_info: Callable[[], ConsumerRunningInfo]

    def handlers(self) -> dict[int, RequestHandler]:
        """Returns the handler of each request code, for a client's connections."""
        return {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._notify_consumer_ids_changed,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._get_consumer_running_info,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._get_consumer_status,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._reset_consumer_offset,
        }

    def _notify_consumer_ids_changed(self, _: Connection, request: Command) -> None:
        if request.ext_fields.get("consumerGroup", self.group) == self.group:
            self.rebalancer.wake()

    def _get_consumer_running_info(self, _: Connection, request: Command) -> Command:
        group = request.ext_fields.get("consumerGroup")
        if group != self.group:
            remark = f"The Consumer Group <{group}> not exist in this consumer"
            return response(request, ResponseCode.SYSTEM_ERROR, remark)
        return response(request, ResponseCode.SUCCESS, body=write_running_info(self.running_info()))

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
