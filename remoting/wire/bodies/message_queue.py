"""A message queue's identity, and maps keyed by it in fastjson's form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from remoting.wire import lenient_json
from remoting.wire.errors import BodyError


class MessageQueue(NamedTuple):
    """Sorts as Java's: by topic, then broker name, then queue id (names are ASCII)."""

    topic: str
    broker_name: str
    queue_id: int

    def __str__(self) -> str:
        """Returns Java's text; the consistent-hash strategy hashes it."""
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, queueId={self.queue_id}]"


def queue_to_json(queue: MessageQueue) -> dict[str, Any]:
    """Returns the queue as a JSON object with its keys in alphabetical order, as Go's textual parser expects."""
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}


def queue_from_json(value: Any) -> MessageQueue:
    """Reads a queue of a JSON object. Raises BodyError for what is none."""
    try:
        return MessageQueue(str(value["topic"]), str(value["brokerName"]), int(value["queueId"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BodyError(f"not a message queue: {value!r}") from error


def write_queue_map(entries: Iterable[tuple[MessageQueue, Any]]) -> msgspec.Raw:
    """Encodes a map keyed by queues in fastjson's form."""
    return msgspec.Raw(lenient_json.dumps_object_keyed((queue_to_json(queue), value) for queue, value in entries))


def read_queue_map(value: Any) -> dict[MessageQueue, Any]:
    """Reads what `lenient_json.loads` made of a map keyed by queues, None being empty. Raises BodyError.

    `$ref` keys, which name no queue, are dropped.
    """
    if not isinstance(value, dict | None):
        raise BodyError(f"not a map of message queues: {type(value).__name__}")
    queues: dict[MessageQueue, Any] = {}
    for key, item in (value or {}).items():
        fields = lenient_json.key_object(key)
        if "$ref" not in fields:
            queues[queue_from_json(fields)] = item
    return queues
