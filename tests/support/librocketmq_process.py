"""librocketmq (the wheel `rocketmq`) in a process of its own, because it may fall over; started by journeys.

    librocketmq_process.py send   NAMESRV GROUP TOPIC COUNT BYTES   COUNT of each kind; one JSON line per result
    librocketmq_process.py stream NAMESRV GROUP TOPIC               sends until SIGTERM; one line per stored message
    librocketmq_process.py order  NAMESRV GROUP TOPIC COUNT         COUNT of each of three orders, each to its queue
    librocketmq_process.py delay  NAMESRV GROUP TOPIC LEVEL         one message
    librocketmq_process.py consume NAMESRV GROUP TOPIC COUNT        one line per message; refuses the first message,
                                                                    ends after COUNT and when that one has come back
    librocketmq_process.py member NAMESRV GROUP TOPIC [WAY [TAGS]]  one line per message, until SIGTERM; WAY is
                                                                    clustering, broadcasting or orderly
    librocketmq_process.py pull   NAMESRV GROUP TOPIC [TAGS]        one line per message that there is

It leaves by `os._exit`, past the library's destructors; consumers shut down before.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from rocketmq.client import Message, MessageModel, Producer, PullConsumer, PushConsumer
from rocketmq.exceptions import ProducerSendOrderlyFailed, ProducerSendSyncFailed

CONSUME_WITHIN_S = 120.0
SENT_WITHIN_S = 60.0
STREAM_INTERVAL_S = 0.02
ORDERS = 3
# Raised before anything is sent.
NO_ROUTE = "No route info"
# The library acknowledges after the callback has returned, and gives that up when it shuts down.
ACKNOWLEDGED_AFTER_S = 0.5
STOP = (signal.SIGTERM,)
_output = threading.Lock()


def main(action: str, namesrv: str, group: str, topic: str, *words: str) -> None:
    actions = {"send": send, "stream": stream, "order": order, "delay": delay}
    actions |= {"consume": consume, "member": member, "pull": pull}
    actions[action](namesrv, group, topic, *(int(word) if word.isdecimal() else word for word in words))
    sys.stdout.flush()
    os._exit(0)


def show(fields: dict[str, Any]) -> None:
    """One whole line: the library calls back from threads of its own."""
    with _output:
        print(json.dumps(fields), flush=True)


# producers


def send(namesrv: str, group: str, topic: str, count: int, body_bytes: int) -> None:
    producer = started_producer(namesrv, group)
    for number in range(count):
        show_result("sync", number, sent(producer.send_sync, message(topic, "sync", number, body_bytes)))
    for number in range(count):
        producer.send_oneway(message(topic, "oneway", number, body_bytes))
    send_async(producer, [message(topic, "async", number, body_bytes) for number in range(count)])
    show_result("batch", 0, producer.send_batch([message(topic, "batch", number) for number in range(count)]))
    producer.shutdown()


def send_async(producer: Producer, messages: list[Message]) -> None:
    """Returns when all answers are there, or after a time."""
    answered = threading.Semaphore(0)

    def send_one(number: int) -> None:
        def stored(result: Any) -> None:
            show_result("async", number, result)
            answered.release()

        def failed(error: Exception) -> None:
            show({"kind": "async", "number": number, "status": str(error)})
            answered.release()

        producer.send_async(messages[number], stored, failed)

    for number in range(len(messages)):
        send_one(number)
    deadline_s = time.monotonic() + SENT_WITHIN_S
    for _ in messages:
        answered.acquire(timeout=max(0, deadline_s - time.monotonic()))


def stream(namesrv: str, group: str, topic: str) -> None:
    hold_back_stop()
    producer = started_producer(namesrv, group)
    say_ready()
    number = 0
    while signal.sigtimedwait(STOP, STREAM_INTERVAL_S) is None:
        show_result("stream", number, sent(producer.send_sync, message(topic, "stream", number)))
        number += 1
    producer.shutdown()


def order(namesrv: str, group: str, topic: str, count: int) -> None:
    producer = started_producer(namesrv, group)
    for number in range(count):
        for each in range(ORDERS):
            kind = f"order{each}"
            show_result(kind, number, sent(producer.send_orderly, message(topic, kind, number), each))
    producer.shutdown()


def sent(send: Callable[..., Any], *arguments: Any) -> Any:
    """Sends again while there is no route: of a topic that is just being made, or where the name server is busy."""
    deadline_s = time.monotonic() + SENT_WITHIN_S
    while True:
        try:
            return send(*arguments)
        except (ProducerSendOrderlyFailed, ProducerSendSyncFailed) as error:
            if NO_ROUTE not in str(error) or time.monotonic() > deadline_s:
                raise
            time.sleep(STREAM_INTERVAL_S)


def delay(namesrv: str, group: str, topic: str, level: int) -> None:
    producer = started_producer(namesrv, group)
    late = message(topic, "delayed", level)
    late.set_delay_time_level(level)
    show({"sent_ms": int(time.time() * 1000)})
    show_result("delayed", level, sent(producer.send_sync, late))
    producer.shutdown()


def started_producer(namesrv: str, group: str) -> Producer:
    producer = Producer(group)
    producer.set_namesrv_addr(namesrv)
    # By default the library sends again after 3 s, and the message is there twice.
    producer.set_timeout(int(SENT_WITHIN_S * 1000))
    producer.start()
    return producer


def message(topic: str, kind: str, number: int, body_bytes: int = 0) -> Message:
    made = Message(topic)
    made.set_keys(f"{kind}-key-{number}")
    made.set_tags(kind)
    made.set_property("origin", "librocketmq")
    made.set_body(f"{kind}-{number}".ljust(body_bytes, "."))
    return made


def show_result(kind: str, number: int, result: Any) -> None:
    show(
        {
            "kind": kind,
            "number": number,
            "status": result.status.name,
            "msg_id": result.msg_id,
            "queue_offset": result.offset,
        }
    )


# consumers


def consume(namesrv: str, group: str, topic: str, count: int) -> None:
    done = threading.Event()
    seen: list[str] = []

    def took(received: Any) -> None:
        body = received.body.decode()
        seen.append(body)
        show_received(received)
        if len(set(seen)) >= count and seen.count(seen[0]) > 1:
            done.set()
        if len(seen) == 1:
            raise ValueError("refused by the test")

    consumer = started_consumer(namesrv, group, topic, took)
    done.wait(CONSUME_WITHIN_S)
    shut_down(consumer)


def member(namesrv: str, group: str, topic: str, way: str = "clustering", tags: str = "*") -> None:
    hold_back_stop()
    consumer = started_consumer(namesrv, group, topic, show_received, way=way, tags=tags)
    say_ready()
    signal.sigwait(STOP)
    shut_down(consumer)


def pull(namesrv: str, group: str, topic: str, tags: str = "*") -> None:
    consumer = PullConsumer(group)
    consumer.set_namesrv_addr(namesrv)
    consumer.start()
    for received in consumer.pull(topic, tags):
        show_received(received)
    consumer.shutdown()


def started_consumer(
    namesrv: str, group: str, topic: str, took: Callable[[Any], None], *, way: str = "clustering", tags: str = "*"
) -> PushConsumer:
    model = MessageModel.BROADCASTING if way == "broadcasting" else MessageModel.CLUSTERING
    consumer = PushConsumer(group, orderly=way == "orderly", message_model=model)
    consumer.set_namesrv_addr(namesrv)
    consumer.set_thread_count(1)
    consumer.set_message_batch_max_size(1)  # a refusal returns the whole batch, and it would be cut short
    consumer.subscribe(topic, took, tags)
    consumer.start()
    return consumer


def shut_down(consumer: PushConsumer) -> None:
    time.sleep(ACKNOWLEDGED_AFTER_S)
    consumer.shutdown()


def show_received(received: Any) -> None:
    show(
        {
            "at_ms": int(time.time() * 1000),
            "msg_id": received.id,
            "topic": received.topic,
            "body": received.body.decode(),
            "tags": (received.tags or b"").decode(),
            "keys": (received.keys or b"").decode(),
            "queue_id": received.queue_id,
            "queue_offset": received.queue_offset,
            "reconsume_times": received.reconsume_times,
        }
    )


def hold_back_stop() -> None:
    """Before the library starts its threads, so that all of them leave the signal to those who wait for it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)


def say_ready() -> None:
    """From now on SIGTERM ends it well."""
    with _output:
        print("ready", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
