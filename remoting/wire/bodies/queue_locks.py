"""Bodies of LOCK_BATCH_MQ (41) and UNLOCK_BATCH_MQ (42): queues that a member of an orderly group locks."""

from __future__ import annotations

from typing import Any

import msgspec

from remoting.wire import lenient_json
from remoting.wire.bodies.document import Document, convert, read_object
from remoting.wire.bodies.message_queue import MessageQueue, queue_from_json, queue_to_json
from remoting.wire.command import Body
from remoting.wire.errors import BodyError


class LockRequest(Document, kw_only=True):
    """`LockBatchRequestBody`. `only_this_broker`: do not lock on the broker's replicas, too."""

    client_id: str
    consumer_group: str
    queues: list[MessageQueue] = msgspec.field(default_factory=list, name="mqSet")
    only_this_broker: bool = False


def read_lock_request(body: Body) -> LockRequest:
    """Reads the request of 41 and 42. Raises BodyError naming the missing field."""
    value = read_object("LockBatchRequestBody", body)
    queues = value.pop("mqSet", [])
    request = convert(LockRequest, value)
    request.queues = _queues(queues)
    return request


def write_lock_request(request: LockRequest) -> bytes:
    """Encodes the request of 41 and 42."""
    return lenient_json.dumps(
        {
            "clientId": request.client_id,
            "consumerGroup": request.consumer_group,
            "mqSet": [queue_to_json(queue) for queue in request.queues],
            "onlyThisBroker": request.only_this_broker,
        }
    )


def write_locked(queues: list[MessageQueue]) -> bytes:
    """Encodes the response to 41: those of the requested queues that the member has locked now."""
    return lenient_json.dumps({"lockOKMQSet": [queue_to_json(queue) for queue in queues]})


def read_locked(body: Body) -> list[MessageQueue]:
    """Reads the response to 41: the queues that are locked now. Raises BodyError."""
    return _queues(read_object("LockBatchResponseBody", body).get("lockOKMQSet", []))


def _queues(value: Any) -> list[MessageQueue]:
    if not isinstance(value, list):
        raise BodyError(f"not a list of message queues: {type(value).__name__}")
    return [queue_from_json(item) for item in value]
