"""Prints every delivery as one JSON line, then fails."""

from __future__ import annotations

import json
import os
import time

from consumer import listener
from consumer.engine import brokers
from consumer.engine.message import Message
from tests.support.refusing import GROUP, RETURNS_MAX, TOPIC

# An answer that came late would have the message sent back twice.
brokers.SEND_BACK_TIMEOUT_MS = 60_000


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
    # With one call: a line of the log, which another thread writes, does not come before its end.
    os.write(1, f"{json.dumps(delivery)}\n".encode())
    raise ValueError("refused by the test")
