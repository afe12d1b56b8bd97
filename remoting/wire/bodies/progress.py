"""A group's offsets on one topic, as tools, brokers and clients exchange them: 220, 221, 222, 223.

All are queue offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from remoting.wire.bodies.document import convert, read_object
from remoting.wire.bodies.message_queue import (
    MessageQueue,
    queue_from_json,
    queue_to_json,
    read_queue_map,
    write_queue_map,
)
from remoting.wire.command import Body

Progress = Mapping[MessageQueue, int]


def write_reset(offsets: Progress) -> bytes:
    """Encodes `ResetOffsetBody`: the response to 222, and the body of 220 to most clients."""
    return msgspec.json.encode({"offsetTable": write_queue_map(offsets.items())})


def read_reset(body: Body) -> dict[MessageQueue, int]:
    """Reads either form: the map that most clients get, or the list for C++. Raises BodyError."""
    table = read_object("ResetOffsetBody", body).get("offsetTable")
    if isinstance(table, list):
        return {queue_from_json(entry): convert(int, entry.get("offset")) for entry in table}
    return _read(table)


def write_reset_for_cpp(offsets: Progress) -> bytes:
    """Encodes `ResetOffsetBodyForC`: the same as a list, which is what C++ clients read."""
    entries = [queue_to_json(queue) | {"offset": queue_offset} for queue, queue_offset in offsets.items()]
    return msgspec.json.encode({"offsetTable": entries})


def write_client_progress(progress: Progress) -> bytes:
    """Encodes `GetConsumerStatusBody` as one client answers 221."""
    return msgspec.json.encode({"consumerTable": {}, "messageQueueTable": write_queue_map(progress.items())})


def read_client_progress(body: Body) -> dict[MessageQueue, int]:
    """Reads `GetConsumerStatusBody` as one client answers 221. Raises BodyError."""
    return _read(read_object("GetConsumerStatusBody", body).get("messageQueueTable"))


def write_group_progress(progress: Mapping[str, Progress]) -> bytes:
    """Encodes `GetConsumerStatusBody` as the response to 223: per client id."""
    table = {client_id: write_queue_map(queues.items()) for client_id, queues in progress.items()}
    return msgspec.json.encode({"consumerTable": table, "messageQueueTable": {}})


def read_group_progress(body: Body) -> dict[str, dict[MessageQueue, int]]:
    """Reads `GetConsumerStatusBody` as the response to 223: per client id. Raises BodyError."""
    table = read_object("GetConsumerStatusBody", body).get("consumerTable", {})
    return {client_id: _read(queues) for client_id, queues in convert(dict[str, Any], table).items()}


def _read(value: Any) -> dict[MessageQueue, int]:
    return {queue: convert(int, item) for queue, item in read_queue_map(value).items()}
