"""Rebalance by the broker: 400 QUERY_ASSIGNMENT, 401 SET_MESSAGE_REQUEST_MODE, 402 GET_ALL_MESSAGE_REQUEST_MODE."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from remoting.wire.bodies.document import Document
from remoting.wire.bodies.message_queue import MessageQueue, queue_to_json

PULL = "PULL"
POP = "POP"


class AssignmentQuery(Document, kw_only=True):
    """`QueryAssignmentRequestBody`: which queues of `topic` are this client's."""

    client_id: str
    consumer_group: str
    message_model: str = "CLUSTERING"
    strategy_name: str | None = None
    topic: str


class RequestMode(Document, kw_only=True):
    """`SetMessageRequestModeRequestBody`: how a group gets the messages of a topic."""

    consumer_group: str
    mode: str = PULL
    pop_share_queue_num: int = 0
    topic: str


class RequestModeTable(Document, kw_only=True):
    """402 and config/messageRequestMode.json: topic → group → mode."""

    message_request_mode_map: dict[str, dict[str, RequestMode]] = {}  # noqa: RUF012 - msgspec copies a default


def write_assignments(queues: Iterable[MessageQueue] | None, mode: str) -> bytes:
    """Encodes `QueryAssignmentResponseBody`.

    None: the client keeps the queues it has; an empty list: it gives up all.
    """
    if queues is None:
        return b"{}"
    assignments = [{"messageQueue": queue_to_json(queue), "mode": mode} for queue in sorted(queues)]
    return msgspec.json.encode({"messageQueueAssignments": assignments})
