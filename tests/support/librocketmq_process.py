"""librocketmq (the wheel `rocketmq`) in a process of its own, because it may fall over; started by journeys.

    librocketmq_process.py send    NAMESRV GROUP TOPIC COUNT [BYTES]     one JSON line per result
    librocketmq_process.py consume NAMESRV GROUP TOPIC COUNT [FAILURES]  one JSON line per message, ends after COUNT;
                                                                         the first FAILURES messages are refused

It leaves by `os._exit`, past the library's destructors; `consume` shuts its consumer down before.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

from rocketmq.client import Message, Producer, PushConsumer

CONSUME_WITHIN_S = 60.0


def main(action: str, namesrv: str, group: str, topic: str, *numbers: str) -> None:
    act = {"send": send, "consume": consume}[action]
    act(namesrv, group, topic, *map(int, numbers))
    sys.stdout.flush()
    os._exit(0)


def show(fields: dict[str, Any]) -> None:
    print(json.dumps(fields), flush=True)


def send(namesrv: str, group: str, topic: str, count: int, body_bytes: int) -> None:
    producer = Producer(group)
    producer.set_namesrv_addr(namesrv)
    producer.start()
    for number in range(count):
        message = Message(topic)
        message.set_keys(f"key-{number}")
        message.set_tags("native")
        message.set_property("origin", "librocketmq")
        message.set_body(f"native-{number}".ljust(body_bytes, "."))
        result = producer.send_sync(message)
        show({"status": result.status.name, "msg_id": result.msg_id, "queue_offset": result.offset})
    producer.shutdown()


def consume(namesrv: str, group: str, topic: str, count: int) -> None:
    """Refuses the first message; ends when it has come back and `count` different ones were seen."""
    done = threading.Event()
    seen: list[str] = []

    def took(message: Any) -> None:
        body = message.body.decode()
        seen.append(body)
        show(
            {
                "at_ms": int(time.time() * 1000),
                "msg_id": message.id,
                "topic": message.topic,
                "body": body,
                "tags": (message.tags or b"").decode(),
                "keys": (message.keys or b"").decode(),
                "queue_id": message.queue_id,
                "queue_offset": message.queue_offset,
                "reconsume_times": message.reconsume_times,
            }
        )
        if len(set(seen)) >= count and seen.count(seen[0]) > 1:
            done.set()
        if len(seen) == 1:
            raise ValueError("refused by the test")

    consumer = PushConsumer(group)
    consumer.set_namesrv_addr(namesrv)
    consumer.set_thread_count(1)
    consumer.set_message_batch_max_size(1)  # a refusal returns the whole batch, and it would be cut short
    consumer.subscribe(topic, took)
    consumer.start()
    done.wait(CONSUME_WITHIN_S)
    time.sleep(0.5)  # the library acknowledges after the callback has returned
    consumer.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
