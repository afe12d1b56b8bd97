"""Measures consumers side by side: messages a second of one process with a listener that only counts.

A backlog of 1 KiB messages in four queues, each consumer with a group of its own, from its start until its last commit
is read back at the broker: ours with a plain and with an `async` function, librocketmq's Python binding, and the Java
push consumer; ours and Java's once more in order. On our broker, and on Apache RocketMQ where it is installed. Plain
Celery tasks with the same body beside them, from Valkey, one worker process. Processor time is that of all threads of
the consuming processes; latency is from send to listener, at `STEADY_PER_S` messages a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import redis

from bench.clusters import Cluster, apache
from bench.raw_client import percentile
from remoting.client.producer import Producer
from tests.support.children import Child
from tests.support.java import require_apache, require_driver
from tests.support.java_client import JavaClient
from tests.support.our_broker import ROOT, OurBroker
from tests.support.progress import committed
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until

BODY = b"x" * 1024
BACKLOG = int(os.environ.get("BENCH_MESSAGES", "200000"))
SENDERS = 256
QUEUES = 4
TOPIC = "consumption"
STEADY_PER_S, STEADY_S = 500, 6.0
TASKS = 10_000
WITHIN_S = 180.0
CLIENT_JVM = ("-Xms512m", "-Xmx1g", "-XX:+UseG1GC")
WAYS = ("plain", "async", "librocketmq", "java", "in order", "java in order")


@dataclass(frozen=True, slots=True)
class Figures:
    """Rates are messages a second; latencies in milliseconds, None where they were not measured."""

    rate: float
    core_rate: float
    resident_mb: float
    p50_ms: float | None = None
    p99_ms: float | None = None


def main() -> None:
    ways = [way for way in WAYS if way != "librocketmq" or importlib.util.find_spec("rocketmq")]
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        for label, make in _clusters(folder):
            with make() as cluster:
                asyncio.run(_fill(cluster.namesrv))
                for way in ways:
                    with contextlib.suppress(_NotInstalled):
                        measure = _java if way.startswith("java") else _member
                        _show(f"{way} on {label}", measure(cluster, way, folder))
        _show("plain Celery tasks", _celery(folder))


class _NotInstalled(Exception):
    pass


def _clusters(folder: Path) -> Iterator[tuple[str, Callable[[], Cluster]]]:
    yield "ours", lambda: OurBroker(folder / "store", "async")
    if _is_there(require_apache):
        yield "Apache", lambda: apache(folder, "async")


def _is_there(require: Callable[..., object], *arguments: str) -> bool:
    try:
        require(*arguments)
    except BaseException:  # what the suite skips with
        return False
    return True


async def _fill(namesrv: str) -> None:
    producer = Producer(namesrv, "bench")
    await producer.start()
    await producer.send(TOPIC, BODY)
    sent = 1

    async def sender() -> None:
        nonlocal sent
        while sent < BACKLOG:
            sent += 1
            await producer.send(TOPIC, BODY, timeout_ms=30_000)

    await asyncio.gather(*(sender() for _ in range(SENDERS)))
    await producer.close()


def _member(cluster: Cluster, way: str, _: Path) -> Figures:
    group = _name("bench", way)
    member = _start_member(cluster, way, group, TOPIC, BACKLOG)
    ended = json.loads(member.communicate(timeout=WITHIN_S)[0].splitlines()[-1])
    seconds = _read_back(cluster, group) - ended["began_s"]
    late_ms = asyncio.run(_steady(cluster, way))
    return Figures(
        BACKLOG / seconds,
        BACKLOG / ended["cpu_s"],
        ended["resident_mb"],
        percentile(late_ms, 0.5),
        percentile(late_ms, 0.99),
    )


def _start_member(cluster: Cluster, way: str, group: str, topic: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.consumption_member", way, cluster.namesrv, group, topic, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)


def _read_back(cluster: Cluster, group: str) -> float:
    """Returns when the whole backlog was committed, in seconds since the epoch."""
    wait_until(lambda: committed(cluster.broker, group, TOPIC, QUEUES) >= BACKLOG, WITHIN_S, "the last commit")
    return time.time()


async def _steady(cluster: Cluster, way: str) -> list[float]:
    """Returns from send to listener, in milliseconds, while few messages come; the first second is not counted."""
    producer = Producer(cluster.namesrv, "bench")
    await producer.start()
    topic, count = _name(f"{TOPIC}-steady", way), int(STEADY_PER_S * STEADY_S)
    await producer.send(topic, BODY)
    member = _start_member(cluster, way, _name("bench-steady", way), topic, count)
    read = asyncio.create_task(asyncio.to_thread(member.communicate, timeout=WITHIN_S))
    while not read.done():
        await producer.send(topic, BODY, properties={"sent_ms": str(time.time() * 1000)})
        await asyncio.sleep(1 / STEADY_PER_S)
    await producer.close()
    late_ms: list[float] = json.loads((await read)[0].splitlines()[-1])["late_ms"]
    return late_ms[-int(STEADY_PER_S * (STEADY_S - 1)) // 2 :]


def _java(cluster: Cluster, way: str, folder: Path) -> Figures:
    if not _is_there(require_driver, "5.4.0"):
        raise _NotInstalled
    with JavaClient("5.4.0", folder / _name(cluster.name, way), cluster.namesrv, jvm=CLIENT_JVM) as java:
        process = next(one for one in psutil.Process().children(recursive=True) if "Driver" in one.cmdline())
        began_s, began_cpu_s = time.time(), _cpu_s([process])
        group = _name("bench", way)
        java.consumer("c", group, TOPIC, report=False, threads=20, orderly=way.endswith("in order"))
        wait_until(lambda: java.call("consumed_count", name="c") >= BACKLOG, WITHIN_S, "the last message")
        cpu_s, resident_mb = _cpu_s([process]) - began_cpu_s, process.memory_info().rss / 1e6
        java.stop("c")
        seconds = _read_back(cluster, group) - began_s
        return Figures(BACKLOG / seconds, BACKLOG / cpu_s, resident_mb)


def _name(of: str, way: str) -> str:
    """Returns a name for a group, topic or folder of one way."""
    return f"{of}-{way.replace(' ', '-')}"


def _celery(folder: Path) -> Figures:
    """Measures from the worker's line `ready` until Valkey holds no task any more."""
    with RedisServer(folder) as server:
        os.environ["CELERY_BROKER_URL"] = f"redis+socket://{server.socket}"
        from bench.consumption_tasks import consume  # its address is known only now

        for _ in range(TASKS):
            consume.delay(BODY.decode())
        command = [sys.executable, "-m", "celery", "-A", "bench.consumption_tasks", "worker"]
        options = ["-c", "1", "-l", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        log = folder / "celery.log"
        child = Child([*command, *options], log, cwd=ROOT, env={"C_FORCE_ROOT": "1", "PYTHONUNBUFFERED": "1"})
        try:
            wait_until(lambda: " ready." in child.output(), WITHIN_S, "the worker")
            began_s = time.time()
            with redis.Redis(unix_socket_path=str(server.socket)) as valkey:
                wait_until(lambda: not valkey.llen("celery") and not valkey.hlen("unacked"), WITHIN_S, "the last task")
            seconds = time.time() - began_s
            processes = [psutil.Process(child.pid), *psutil.Process(child.pid).children(recursive=True)]
            resident_mb = sum(one.memory_info().rss for one in processes) / 1e6
            return Figures(TASKS / seconds, TASKS / _cpu_s(processes), resident_mb)
        finally:
            child.stop()


def _cpu_s(processes: list[psutil.Process]) -> float:
    return sum(sum(one.cpu_times()[:2]) for one in processes)


def _show(label: str, figures: Figures) -> None:
    def text(value: float | None) -> Any:
        return "" if value is None else f"{value:.1f}"

    if label == "plain on ours":
        print(f"{'1 KiB, one process':<28}{'msg/s':>10}{'per CPU-s':>11}{'MB':>7}{'p50 ms':>9}{'p99 ms':>9}")
    print(
        f"{label:<28}{figures.rate:>10,.0f}{figures.core_rate:>11,.0f}{figures.resident_mb:>7.0f}"
        f"{text(figures.p50_ms):>9}{text(figures.p99_ms):>9}",
        flush=True,
    )


if __name__ == "__main__":
    main()
