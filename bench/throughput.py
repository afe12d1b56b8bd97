"""Measures our broker beside Apache RocketMQ 5.4.0: the same Java client, machine, message size and flush mode.

One after the other, each in a process of its own with an empty store: time from the start to a route, sends a second
from 64 blocking threads and asynchronously, messages a second into one push consumer, resident memory afterwards.
Figures of a shared machine mean little by themselves; the last column is ours ÷ Apache's.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.clusters import Cluster, apache, processes
from tests.support.java import require_apache, require_driver
from tests.support.java_client import JavaClient
from tests.support.our_broker import OurBroker
from tests.support.waiting import wait_until

BODY_BYTES = 1024
BLOCKING_THREADS = 64
WARM_UP_SENDS = 6_000
SENDS_MAX = 400_000
# Each of the two ways of sending, and the draining, goes on for so long at most.
STEP_S = 8.0
CLIENT_JVM = ("-Xms512m", "-Xmx1g", "-XX:+UseG1GC")
CONSUMER_THREADS = 20


@dataclass(frozen=True, slots=True)
class Figures:
    """One cluster in one flush mode. Rates are messages a second; memory is of name server and broker together."""

    started_s: float
    blocking_sends: float
    async_sends: float
    consumed: float
    resident_mb: float


def main() -> None:
    require_apache()
    require_driver("5.4.0")
    for flush in ("sync", "async"):
        theirs = measure(lambda folder, flush=flush: apache(folder, flush))
        ours = measure(lambda folder, flush=flush: OurBroker(folder / "store", flush))
        print_table(flush, ours, theirs)


def measure(make: Callable[[Path], Cluster]) -> Figures:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        began_s = time.perf_counter()
        with make(Path(folder)) as cluster:
            started_s = time.perf_counter() - began_s
            with JavaClient("5.4.0", Path(folder) / "java", cluster.namesrv, jvm=CLIENT_JVM) as java:
                blocking, asynchronous, sent = _send(java)
                consumed = _consume(java, sent)
            return Figures(started_s, blocking, asynchronous, consumed, _resident_mb(cluster))


def _send(java: JavaClient) -> tuple[float, float, int]:
    """Returns (blocking sends a second, asynchronous ones, how many messages there are now)."""
    java.producer("p")
    sent = 0
    rates = []
    steps = (("sync", WARM_UP_SENDS), ("async", WARM_UP_SENDS), ("sync", SENDS_MAX), ("async", SENDS_MAX))
    for mode, count in steps:
        result = java.call(
            "send_load",
            within_s=STEP_S * 4,
            producer="p",
            topic="bench",
            mode=mode,
            count=count,
            threads=BLOCKING_THREADS,
            size=BODY_BYTES,
            limit_ms=int(STEP_S * 1000),
        )
        if result["failed"]:
            print(f"   {result['failed']} of {result['sent']} sends failed: {result['first_error']}")
        sent += result["sent"]
        rates.append(result["sent"] / result["nanos"] * 1e9)
    java.stop("p")
    return rates[2], rates[3], sent


def _consume(java: JavaClient, sent: int) -> float:
    """Returns the messages a second that one push consumer gets, from its first message on."""
    java.consumer("c", "bench-group", "bench", report=False, threads=CONSUMER_THREADS)
    wait_until(lambda: java.call("consumed_count", name="c"), 30, "the first message")
    began_s, first = time.perf_counter(), java.call("consumed_count", name="c")
    while time.perf_counter() - began_s < STEP_S and java.call("consumed_count", name="c") < sent:
        time.sleep(0.02)
    took_s, last = time.perf_counter() - began_s, java.call("consumed_count", name="c")
    return (last - first) / took_s


def _resident_mb(cluster: Cluster) -> float:
    return sum(psutil.Process(pid).memory_info().rss for pid in processes(cluster)) / 1e6


def print_table(flush: str, ours: Figures, apache: Figures) -> None:
    rows = (
        (f"sends/s, {BLOCKING_THREADS} blocking threads", ours.blocking_sends, apache.blocking_sends, ",.0f"),
        ("sends/s, asynchronous", ours.async_sends, apache.async_sends, ",.0f"),
        ("consumed/s, one push consumer", ours.consumed, apache.consumed, ",.0f"),
        ("seconds from start to a route", ours.started_s, apache.started_s, ",.1f"),
        ("resident MB, name server + broker", ours.resident_mb, apache.resident_mb, ",.0f"),
    )
    print(f"{flush + ' flush, 1 KiB':<36}{'ours':>10}{'Apache':>10}{'ours/Apache':>13}")
    for name, our_figure, apache_figure, form in rows:
        ratio = our_figure / apache_figure
        print(f"{name:<36}{our_figure:>10{form}}{apache_figure:>10{form}}{ratio:>13.2f}")
    sending = statistics.geometric_mean(
        (ours.blocking_sends / apache.blocking_sends, ours.async_sends / apache.async_sends)
    )
    print(f"{'both ways of sending':<56}{sending:>13.2f}", flush=True)


if __name__ == "__main__":
    main()
