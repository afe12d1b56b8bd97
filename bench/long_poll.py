"""Measures the time from a send to the answers of the pulls that waited for it, with 10,000 pulls held; beside Apache.

One topic of 1,000 queues, read by ten groups: ten pulls wait at each queue, so each send wakes ten and leaves 9,990
asleep. Both brokers flush asynchronously: what is measured is the waking, not the disk. The clock is the client's:
from the writing of the send to the reading of each pull's answer.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from bench.clusters import APACHE_JVM, Cluster
from bench.raw_client import RawClient, connect_all, percentile
from remoting.client.admin import Admin
from remoting.client.connections import Connections
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.pull import SUBSCRIPTION_FLAG, SUSPEND_FLAG
from tests.support.apache import ApacheRocketMQ
from tests.support.java import require_apache
from tests.support.our_broker import OurBroker

TOPIC = "bench-wake"
QUEUES = 1_000
GROUPS = 10
CONNECTIONS = 100
SENDS = 1_500
WARM_UP_SENDS = 500
HOLD_MS = 600_000
BODY = b"x" * 200
ANSWER_WITHIN_S = 20.0


class Waking:
    """Pulls of every group at every queue; each is asked again as soon as it was answered."""

    def __init__(self) -> None:
        self.clients: list[RawClient] = []
        self.sent_s = 0.0
        self.latencies_ms: list[float] = []
        self.last_ms: list[float] = []
        self._next = [[0] * QUEUES for _ in range(GROUPS)]
        self._left = 0
        self._woken: asyncio.Future[None] | None = None
        self.strays = 0

    def pull(self, client: RawClient, group: int, queue_id: int) -> None:
        fields = {
            "consumerGroup": f"bench-{group}",
            "topic": TOPIC,
            "queueId": str(queue_id),
            "queueOffset": str(self._next[group][queue_id]),
            "maxMsgNums": "32",
            "sysFlag": str(SUSPEND_FLAG | SUBSCRIPTION_FLAG),
            "commitOffset": "0",
            "suspendTimeoutMillis": str(HOLD_MS),
            "subscription": "*",
            "subVersion": "0",
        }
        # The opaque says which pull it is; those of `ask` are below.
        client.send(RequestCode.PULL_MESSAGE, fields, opaque=1_000_000 + group * QUEUES + queue_id)

    def answered(self, client: RawClient, answer: Command, now_s: float) -> None:
        group, queue_id = divmod(answer.opaque - 1_000_000, QUEUES)
        if answer.code == ResponseCode.SUCCESS:
            self.latencies_ms.append((now_s - self.sent_s) * 1000)
            self._next[group][queue_id] = int(answer.ext_fields["nextBeginOffset"])
            self._left -= 1
            if self._left == 0 and self._woken is not None:
                self.last_ms.append((now_s - self.sent_s) * 1000)
                self._woken.set_result(None)
        else:
            self.strays += 1
        self.pull(client, group, queue_id)

    async def send(self, sender: RawClient, queue_id: int) -> None:
        """Returns when all pulls of the queue were answered."""
        loop = asyncio.get_running_loop()
        self._left, self._woken = GROUPS, loop.create_future()
        fields = {"a": "bench", "b": TOPIC, "c": "TBW102", "d": "4", "e": str(queue_id), "f": "0", "h": "0", "i": ""}
        fields["g"] = str(int(time.time() * 1000))
        self.sent_s = loop.time()
        stored = sender.ask(RequestCode.SEND_MESSAGE_V2, fields, BODY)
        async with asyncio.timeout(ANSWER_WITHIN_S):
            answer, _ = await asyncio.gather(stored, self._woken)
        assert answer.code == ResponseCode.SUCCESS, answer.remark


async def measure(broker: str) -> Waking:
    connections = Connections()
    config = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
    await Admin(connections).topics.create(broker, config)
    await connections.close()
    waking = Waking()
    waking.clients = await connect_all(broker, CONNECTIONS, waking.answered)
    (sender,) = await connect_all(broker, 1)
    for number in range(GROUPS * QUEUES):
        waking.pull(waking.clients[number % CONNECTIONS], *divmod(number, QUEUES))
        if number % 500 == 0:
            await asyncio.sleep(0.02)
    await asyncio.sleep(3.0)  # until the last is held: nothing says so from outside
    for number in range(WARM_UP_SENDS):
        await waking.send(sender, number * 7 % QUEUES)
    waking.latencies_ms.clear()
    waking.last_ms.clear()
    for number in range(SENDS):
        await waking.send(sender, number * 7 % QUEUES)
    lost = sum(client.is_lost for client in waking.clients)
    assert not lost, f"{lost} connections were closed"
    for client in (*waking.clients, sender):
        client.close()
    return waking


def main() -> None:
    require_apache()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        ours = _measured(OurBroker(folder / "ours", "async"))
        settings = {"flushDiskType": "ASYNC_FLUSH", "mappedFileSizeConsumeQueue": "20000"}
        apache = _measured(ApacheRocketMQ(folder / "apache", settings=settings, jvm=APACHE_JVM))
    print(f"{f'{GROUPS * QUEUES:,} pulls held, ms from send to answer':<48}{'ours':>9}{'Apache':>9}{'ours/Apache':>13}")
    for label, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
        _print_row(f"{label} of all answers", share, ours.latencies_ms, apache.latencies_ms)
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        _print_row(f"{label} of the last of the ten", share, ours.last_ms, apache.last_ms)


def _measured(cluster: Cluster) -> Waking:
    with cluster:
        return asyncio.run(measure(cluster.broker))


def _print_row(name: str, share: float, ours: list[float], apache: list[float]) -> None:
    our_figure, apache_figure = percentile(ours, share), percentile(apache, share)
    print(f"{name:<48}{our_figure:>9.2f}{apache_figure:>9.2f}{our_figure / apache_figure:>13.2f}", flush=True)


if __name__ == "__main__":
    main()
