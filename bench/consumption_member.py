"""One member of a group in a process of its own, for the benchmark `consumption`.

    consumption_member.py WAY NAMESRV GROUP TOPIC COUNT     WAY is plain, async, "in order" or librocketmq

Consumes COUNT messages with a listener that only counts, leaves the group, and prints a line of JSON: when it started
(seconds since the epoch), seconds of processor time of all threads, largest resident memory in MB, and the milliseconds
from send to listener of each message whose property `sent_ms` says when it was sent.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import threading
import time
from typing import Any

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule

# librocketmq acknowledges after the callback has returned, and gives that up when it shuts down.
ACKNOWLEDGED_AFTER_S = 0.5


def main(way: str, namesrv: str, group: str, topic: str, count: str) -> None:
    began_s, began_cpu_s = time.time(), time.process_time()
    if way == "librocketmq":
        late_ms = librocketmq(namesrv, group, topic, int(count))
    else:
        late_ms = asyncio.run(ours(way, namesrv, group, topic, int(count)))
    figures = {
        "began_s": began_s,
        "cpu_s": time.process_time() - began_cpu_s,
        "resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "late_ms": late_ms,
    }
    print(json.dumps(figures), flush=True)
    os._exit(0)  # past the destructors of librocketmq


async def ours(way: str, namesrv: str, group: str, topic: str, count: int) -> list[float]:
    consumed, late_ms, done = 0, list[float](), asyncio.Event()
    loop = asyncio.get_running_loop()

    def plain(message: Message) -> None:
        nonlocal consumed
        consumed += 1
        if sent_ms := message.properties.get("sent_ms"):
            late_ms.append(time.time() * 1000 - float(sent_ms))
        if consumed == count:
            loop.call_soon_threadsafe(done.set)

    async def asynchronous(message: Message) -> None:
        plain(message)

    is_async = way == "async"
    listener = Listener(topic, asynchronous if is_async else plain, is_async=is_async)
    config = ConsumerConfig(namesrv, group, start=start_rule("first"), is_orderly=way == "in order")
    member = PushConsumer(config, {topic: listener})
    await member.start()
    await done.wait()
    await member.stop()
    return late_ms


def librocketmq(namesrv: str, group: str, topic: str, count: int) -> list[float]:
    from rocketmq.client import PushConsumer as NativeConsumer  # not installed everywhere

    consumed, late_ms, done = 0, list[float](), threading.Event()

    def took(message: Any) -> None:
        nonlocal consumed
        consumed += 1
        if sent_ms := message.get_property("sent_ms"):
            late_ms.append(time.time() * 1000 - float(sent_ms))
        if consumed >= count:
            done.set()

    member = NativeConsumer(group)
    member.set_namesrv_addr(namesrv)
    member.set_thread_count(1)  # with more of them it is slower
    member.set_message_batch_max_size(1)
    member.subscribe(topic, took, "*")
    member.start()
    done.wait()
    time.sleep(ACKNOWLEDGED_AFTER_S)
    member.shutdown()
    return late_ms


if __name__ == "__main__":
    main(*sys.argv[1:])
