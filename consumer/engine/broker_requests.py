"""What brokers ask of a member, and its answers.

Each handler acts at once or sets a flag: they run while a connection is being read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from remoting.client.connections import RequestHandler
from remoting.connection import Connection
from remoting.wire import lenient_json
from remoting.wire.bodies.document import without_nulls
from remoting.wire.bodies.message_queue import MessageQueue, read_queue_map, write_queue_map
from remoting.wire.bodies.running_info import ConsumerRunningInfo, write_running_info
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import WireError


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What the handlers need of the consumer they answer for.

    `progress` of one topic's queues; `reset` moves the progress of those queues that it owns.
    """

    group: str
    members_changed: Callable[[], None]
    running_info: Callable[[], ConsumerRunningInfo]
    progress: Callable[[str], Mapping[MessageQueue, int]]
    reset: Callable[[Mapping[MessageQueue, int]], None]


def handlers(member: Member) -> dict[int, RequestHandler]:
    """The table for `ClientInstance(on_request=…)`."""

    def members_changed(_: Connection, request: Command) -> Command | None:
        if request.ext_fields.get("consumerGroup", member.group) == member.group:
            member.members_changed()
        return None

    def running_info(_: Connection, request: Command) -> Command:
        asked = request.ext_fields.get("consumerGroup")
        if asked != member.group:
            remark = f"The Consumer Group <{asked}> not exist in this consumer"
            return response(request, ResponseCode.SYSTEM_ERROR, remark)
        return response(request, ResponseCode.SUCCESS, body=write_running_info(member.running_info()))

    def progress(_: Connection, request: Command) -> Command:
        table = member.progress(request.ext_fields.get("topic", ""))
        body = msgspec.json.encode({"consumerTable": {}, "messageQueueTable": write_queue_map(table.items())})
        return response(request, ResponseCode.SUCCESS, body=body)

    def reset(_: Connection, request: Command) -> Command | None:
        if request.ext_fields.get("group") != member.group:
            return None
        try:
            offsets = _read_offsets(request)
        except WireError as error:
            return response(request, ResponseCode.SYSTEM_ERROR, str(error))
        member.reset(offsets)
        return response(request, ResponseCode.SUCCESS)

    return {
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: members_changed,
        RequestCode.GET_CONSUMER_RUNNING_INFO: running_info,
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: progress,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET: reset,
    }


def _read_offsets(request: Command) -> dict[MessageQueue, int]:
    """From Java's map keyed by queues, or the list of queues with offsets that is meant for C++."""
    document: Any = without_nulls(lenient_json.loads(request.body))
    table = document.get("offsetTable") if isinstance(document, dict) else None
    if isinstance(table, list):
        table = {
            MessageQueue(str(item["topic"]), str(item["brokerName"]), int(item["queueId"])): item["offset"]
            for item in table
        }
    else:
        table = read_queue_map(table)
    return {queue: int(offset) for queue, offset in table.items()}
