"""Measures producers beside each other: 1 KiB messages to our broker, a second and per second of the client's core.

Ours from async code, from threads as Django's views call it, and in batches; librocketmq's Python binding; Apache's
Java producer from threads and asynchronously. Each in a process of its own, one after the other, on one broker that
flushes asynchronously.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from remoting.client.event_loop_thread import EventLoopThread
from remoting.client.outgoing import Message
from remoting.client.producer import Producer
from tests.support.java import require_driver
from tests.support.java_client import JavaClient
from tests.support.our_broker import OurBroker

TOPIC = "sends"
BODY = b"x" * 1024
STEP_S = 6.0
THREADS = 32
IN_FLIGHT = 512
BATCH = 100
TIMEOUT_MS = 30_000
JAVA_JVM = ("-Xms256m", "-Xmx512m", "-XX:+UseG1GC")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, OurBroker(Path(folder) / "store", "async") as broker:
        for name in WAYS:
            ended = subprocess.run(
                [sys.executable, "-m", "bench.sends", name, broker.namesrv], capture_output=True, text=True, check=False
            )
            if ended.returncode:
                print(f"{name:<28} could not be measured: {ended.stderr.strip().splitlines()[-1:]}")
                continue
            _show(name, json.loads(ended.stdout.splitlines()[-1]))
        require_driver("5.4.0")
        with JavaClient("5.4.0", Path(folder) / "java", broker.namesrv, jvm=JAVA_JVM) as java:
            java.producer("bench")
            for name, options in (
                ("Java, 32 threads", {"mode": "blocking", "threads": THREADS}),
                ("Java, asynchronous", {"mode": "async"}),
            ):
                _show(name, _java(java, options))


def _show(name: str, figures: dict[str, float]) -> None:
    sent, took_s, cpu_s = figures["sent"], figures["took_s"], figures["cpu_s"]
    print(f"{name:<28} {sent / took_s:>9,.0f} a second {sent / cpu_s:>9,.0f} per second of a core")


def _java(java: JavaClient, options: dict[str, Any]) -> dict[str, float]:
    def load(count: int, limit_s: float) -> Any:
        limit_ms = round(limit_s * 1000)
        arguments = {"producer": "bench", "topic": TOPIC, "count": count, "limit_ms": limit_ms, **options}
        return java.call("send_load", limit_s + 30, **arguments)

    load(5_000, STEP_S)
    process = psutil.Process(java.child.pid)
    before = process.cpu_times()
    result = load(1_000_000, STEP_S)
    after = process.cpu_times()
    cpu_s = after.user + after.system - before.user - before.system
    return {"sent": result["sent"], "took_s": result["nanos"] / 1e9, "cpu_s": cpu_s}


# each way of sending: returns how many were sent until `deadline_s` on the monotonic clock


def async_sends(namesrv: str) -> dict[str, float]:
    async def run() -> dict[str, float]:
        producer = Producer(namesrv, "bench", timeout_ms=TIMEOUT_MS)
        await producer.start()
        await producer.send(TOPIC, BODY)

        async def sender(deadline_s: float) -> int:
            count = 0
            while time.monotonic() < deadline_s:
                await producer.send(TOPIC, BODY)
                count += 1
            return count

        began_s, cpu_s = time.monotonic(), time.process_time()
        counts = await asyncio.gather(*(sender(began_s + STEP_S) for _ in range(IN_FLIGHT)))
        figures = _figures(sum(counts), began_s, cpu_s)
        await producer.close()
        return figures

    return asyncio.run(run())


def threaded_sends(namesrv: str) -> dict[str, float]:
    return _from_threads(namesrv, lambda producer: producer.send(TOPIC, BODY), 1)


def batches(namesrv: str) -> dict[str, float]:
    batch = [Message(BODY)] * BATCH
    return _from_threads(namesrv, lambda producer: producer.send_batch(TOPIC, batch), BATCH)


def _from_threads(namesrv: str, send: Callable[[Producer], Any], messages: int) -> dict[str, float]:
    """As `consumer.producer` sends: threads that wait for an event loop in another."""
    thread = EventLoopThread("producer")

    async def started() -> Producer:
        producer = Producer(namesrv, "bench", timeout_ms=TIMEOUT_MS)
        await producer.start()
        await producer.send(TOPIC, BODY)
        return producer

    producer = thread.run(started())
    figures = _in_threads(lambda: thread.run(send(producer)), messages)
    thread.run(producer.close())
    thread.close()
    return figures


def librocketmq(namesrv: str) -> dict[str, float]:
    # Only this process may fall over with it.
    from rocketmq import client as native

    producer = native.Producer("bench")
    producer.set_namesrv_addr(namesrv)
    producer.start()

    def send() -> None:
        message = native.Message(TOPIC)
        message.set_body(BODY)
        producer.send_sync(message)

    send()
    return _in_threads(send, 1)


def _in_threads(send: Callable[[], Any], messages: int) -> dict[str, float]:
    counts: list[int] = []
    began_s, cpu_s = time.monotonic(), time.process_time()

    def sender() -> None:
        count = 0
        while time.monotonic() < began_s + STEP_S:
            send()
            count += messages
        counts.append(count)

    threads = [threading.Thread(target=sender) for _ in range(THREADS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return _figures(sum(counts), began_s, cpu_s)


def _figures(sent: int, began_s: float, cpu_s: float) -> dict[str, float]:
    return {"sent": sent, "took_s": time.monotonic() - began_s, "cpu_s": time.process_time() - cpu_s}


WAYS: dict[str, Callable[[str], dict[str, float]]] = {
    "ours, async": async_sends,
    "ours, 32 threads": threaded_sends,
    "ours, batches of 100": batches,
    "librocketmq, 32 threads": librocketmq,
}

if __name__ == "__main__":
    print(json.dumps(WAYS[sys.argv[1]](sys.argv[2])), flush=True)
    os._exit(0)  # past librocketmq's destructors, which may not end
