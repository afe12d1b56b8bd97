"""GET_BROKER_HA_STATUS (907), RESET_MASTER_FLUSH_OFFSET (908), GET_BROKER_EPOCH_CACHE (1007): what tools ask about
replication (RocketMQ's `AdminBrokerProcessor`).

This broker is a master without replicas and without a controller, and answers as Apache's does that is one.
"""

from __future__ import annotations

from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.ha_status import HARuntimeInfo
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


class GetBrokerHAStatus:
    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def __call__(self, request: Request) -> Command:
        status = HARuntimeInfo(master_commit_log_max_offset=self._store.max_commit_log_offset)
        return response(request.command, ResponseCode.SUCCESS, body=write_body(status))


class ResetMasterFlushOffset:
    def __call__(self, request: Request) -> Command:
        """Accepts the offset, which only a replica would keep."""
        return response(request.command, ResponseCode.SUCCESS)


class GetBrokerEpochCache:
    def __call__(self, request: Request) -> Command:
        return response(request.command, ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")
