"""Prints every delivery as one JSON line, then fails."""

from __future__ import annotations

import json
import time

from consumer import listener
from consumer.engine.message import Message
from tests.support.refusing import GROUP, RETURNS_MAX, TOPIC


@listener(group=GROUP, topic=TOPIC, max_reconsume_times=RETURNS_MAX, consume_from="first")
def refuse(message: Message) -> None:
    delivery = {
        "at_ms": time.time_ns() // 1_000_000,
        "topic": message.topic,
        "tags": message.tags,
        "body": message.text,
        "reconsume_times": message.reconsume_times,
        "message_id": message.id,
    }
    print(json.dumps(delivery), flush=True)
    raise ValueError("refused by the test")
