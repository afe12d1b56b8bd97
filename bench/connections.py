"""Measures memory per connection: 10,000 idle consumers that only send heartbeats, in groups of ten; beside Apache.

Every consumer has a connection, a client id and one subscription, and sends heartbeats as clients do. Printed are the
resident memory of the broker's process before and after, and its processor time while it only gets heartbeats. Apache's
heap is fixed and touched as it is needed, so its figure is what the connections made it touch, and what it threw away
on the way.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.raw_client import RawClient, connect_all
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.heartbeat import ConsumerData, HeartbeatData, SubscriptionData
from remoting.wire.codes import RequestCode, ResponseCode
from tests.support.apache import ApacheRocketMQ
from tests.support.java import require_apache
from tests.support.our_broker import OurBroker

CONNECTIONS = 10_000
GROUP_MEMBERS = 10
TOPIC = "bench-connections"
# Clients send one every 30 s; here more often, so that the memory of several heartbeats shows in a short time.
BEATS = 3
BEAT_INTERVAL_S = 5.0
BEATING_AT_ONCE = 200
IDLE_S = 20.0
# Half of what `bench throughput` gives it: with a heap that is never full, nothing says what is needed.
APACHE_JVM = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")


@dataclass(frozen=True, slots=True)
class Figures:
    """Resident megabytes of the broker's process; `idle_cores` with one heartbeat of every client in 30 s."""

    before_mb: float
    after_mb: float
    joined_s: float
    idle_cores: float

    @property
    def kb_per_connection(self) -> float:
        return (self.after_mb - self.before_mb) * 1000 / CONNECTIONS


def main() -> None:
    require_apache()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with OurBroker(folder / "ours", "async") as ours:
            our_figures = asyncio.run(_measure(ours.broker, psutil.Process(ours.pid)))
        with ApacheRocketMQ(folder / "apache", jvm=APACHE_JVM) as apache:
            apache_figures = asyncio.run(_measure(apache.broker, psutil.Process(apache.children[0].pid)))
    rows = (
        ("resident MB of the broker, no client", our_figures.before_mb, apache_figures.before_mb, ",.0f"),
        (f"resident MB with {CONNECTIONS:,} consumers", our_figures.after_mb, apache_figures.after_mb, ",.0f"),
        ("KB per connection", our_figures.kb_per_connection, apache_figures.kb_per_connection, ",.1f"),
        ("seconds until all have joined", our_figures.joined_s, apache_figures.joined_s, ",.1f"),
        ("cores with a heartbeat every 30 s", our_figures.idle_cores, apache_figures.idle_cores, ",.3f"),
    )
    print(f"{'':<44}{'ours':>10}{'Apache':>10}{'ours/Apache':>13}")
    for name, our_figure, apache_figure, form in rows:
        print(
            f"{name:<44}{our_figure:>10{form}}{apache_figure:>10{form}}{our_figure / apache_figure:>13.2f}", flush=True
        )


async def _measure(address: str, process: psutil.Process) -> Figures:
    before_mb = _resident_mb(process)
    began_s = time.perf_counter()
    clients = await connect_all(address, CONNECTIONS)
    await _beat(clients)
    joined_s = time.perf_counter() - began_s
    for _ in range(BEATS):
        await asyncio.sleep(BEAT_INTERVAL_S)
        await _beat(clients)
    cores_before_s, idle_began_s = _cpu_s(process), time.perf_counter()
    await _beat(clients, over_s=IDLE_S)
    # One heartbeat of each client in IDLE_S here, in 30 s in production.
    idle_cores = (_cpu_s(process) - cores_before_s) / (time.perf_counter() - idle_began_s) * (IDLE_S / 30)
    lost = sum(client.is_lost for client in clients)
    assert not lost, f"{lost} connections were closed"
    after_mb = _resident_mb(process)
    for client in clients:
        client.close()
    return Figures(before_mb, after_mb, joined_s, idle_cores)


async def _beat(clients: list[RawClient], over_s: float = 0.0) -> None:
    """Sends one heartbeat of each client, as fast as it goes or spread over `over_s`."""
    pause_s = over_s / (len(clients) / BEATING_AT_ONCE)
    for start in range(0, len(clients), BEATING_AT_ONCE):
        ends_s = time.perf_counter() + pause_s
        portion = range(start, min(len(clients), start + BEATING_AT_ONCE))
        answers = await asyncio.gather(
            *(clients[number].ask(RequestCode.HEART_BEAT, {}, _heartbeat(number)) for number in portion)
        )
        assert all(answer.code == ResponseCode.SUCCESS for answer in answers), answers[0].remark
        await asyncio.sleep(max(0.0, ends_s - time.perf_counter()))


def _heartbeat(number: int) -> bytes:
    wanted = SubscriptionData(topic=TOPIC, sub_string="*", sub_version=1)
    group = f"bench-{number // GROUP_MEMBERS}"
    consumer = ConsumerData(
        group_name=group,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscription_data_set=[wanted],
    )
    return write_body(HeartbeatData(client_id=f"127.0.0.1@{number}", consumer_data_set=[consumer]))


def _resident_mb(process: psutil.Process) -> float:
    return process.memory_info().rss / 1e6


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


if __name__ == "__main__":
    main()
