"""A group of librocketmq's consumers, each in a process of its own, while members come, go and die.

A message may come twice: whoever takes over a queue begins where its last holder told its progress, which
librocketmq does every few seconds. None may be missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from remoting.client.admin import Admin
from remoting.client.errors import ClientError
from remoting.client.instance import ClientInstance
from remoting.client.producer import Producer
from remoting.wire.bodies.consume_stats import read_committed_offsets
from tests.support.librocketmq import NativeProcess, require_librocketmq
from tests.support.our_broker import OurBroker
from tests.support.patience import answered
from tests.support.waiting import eventually

pytestmark = [pytest.mark.journey, pytest.mark.native]

CONSUMED_WITHIN_S = 150.0
QUEUE_COUNT = 4
ALL_QUEUES = set(range(QUEUE_COUNT))


class House:
    """One topic and one group on one cluster, and every process that a test starts there."""

    def __init__(self, cluster: Any, folder: Path, fresh: Callable[[str], str]) -> None:
        require_librocketmq()
        self.cluster = cluster
        self.topic = fresh("native-shared")
        self.group = fresh("native-group")
        self.members: list[NativeProcess] = []
        self._folder = folder
        self._processes: list[NativeProcess] = []
        self._client = ClientInstance(cluster.namesrv)
        self._admin = Admin(self._client.connections, timeout_ms=60_000)
        self._producer = Producer(cluster.namesrv, fresh("senders"), instance=self._client, timeout_ms=60_000)

    async def __aenter__(self) -> House:
        self._client.start()
        await self._producer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        await self._producer.close()
        await self._client.close()

    # what is done

    async def send(self, word: str, count: int = 20) -> set[str]:
        """The bodies."""
        bodies = {f"{word}-{number}" for number in range(count)}
        for body in bodies:
            await answered(self._producer.send, self.topic, body.encode())
        return bodies

    def stream(self) -> NativeProcess:
        """librocketmq sends there, until it is stopped."""
        return self._start("stream", "native-senders")

    def join(self) -> NativeProcess:
        self.members.append(self._start("member", self.group))
        return self.members[-1]

    def leave(self, member: NativeProcess) -> None:
        self.members.remove(member)
        member.stop()

    def die(self, member: NativeProcess) -> None:
        self.members.remove(member)
        member.kill()

    def by_client_id(self) -> list[NativeProcess]:
        """The members in the order in which queues are divided: that of their ids as text, so 10000 is before 9999."""
        return sorted(self.members, key=lambda member: str(member.pid))

    def _start(self, action: str, group: str) -> NativeProcess:
        self._processes.append(NativeProcess(self._folder, action, self.cluster.namesrv, group, self.topic))
        return self._processes[-1]

    # what is so

    def consumed(self) -> set[str]:
        """Bodies, by members present and past."""
        return {line["body"] for process in self._processes for line in process.lines() if "body" in line}

    async def await_consumed(self, bodies: set[str]) -> None:
        await eventually(lambda: bodies <= self.consumed(), CONSUMED_WITHIN_S, "all messages")

    async def await_everybody_reads(self) -> None:
        """Until each member has taken more than it has now."""
        before = [len(member.lines()) for member in self.members]

        def have_read() -> bool:
            return all(len(member.lines()) > count for member, count in zip(self.members, before, strict=True))

        await eventually(have_read, CONSUMED_WITHIN_S, "a message for each member")

    async def await_division(self, *counts: int) -> None:
        """Until those members are there and hold so many queues each, and every queue has one holder."""
        seen: object = None

        async def is_divided() -> bool:
            nonlocal seen
            try:
                seen = held = await self._held()
            except ClientError as error:  # a member that is just coming or going
                seen = error
                return False
            queues = [one for one in held.values() if one is not None]
            return sorted(map(len, queues)) == sorted(counts) and set().union(*queues) == ALL_QUEUES

        def told() -> str:
            return f"{self.topic} divided as {counts}; {[one.pid for one in self.members]} run, seen: {seen!r}"

        await eventually(is_divided, what=told)

    async def _held(self) -> dict[int, set[int] | None]:
        """Per member that the broker knows, by its process id, what it says of itself; None while the broker knows
        others than those that run."""
        connection = await self._admin.clients.consumers(self.cluster.broker, self.group)
        ids = {_process_id(one.client_id): one.client_id for one in connection.connection_set} if connection else {}
        if set(ids) != {member.pid for member in self.members}:
            return dict.fromkeys(ids)
        held: dict[int, set[int] | None] = {}
        for process_id, client_id in ids.items():
            info = await self._admin.clients.running_info(self.cluster.broker, self.group, client_id)
            held[process_id] = {queue.queue_id for queue in info.queues if queue.topic == self.topic}
        return held

    async def progress(self) -> int:
        """The sum of the group's committed offsets."""
        total = 0
        for queue_id in range(QUEUE_COUNT):
            total += await self._admin.offsets.committed(self.cluster.broker, self.group, self.topic, queue_id) or 0
        return total

    async def await_progress(self, count: int) -> None:
        """Until the group has committed so much: librocketmq does it every few seconds, and gives up at its end what it
        has not acknowledged yet."""

        async def is_there() -> bool:
            return await self.progress() == count

        await eventually(is_there, CONSUMED_WITHIN_S, f"a progress of {count}")


def _process_id(client_id: str) -> int:
    """librocketmq's client ids begin with it."""
    return int(client_id.partition("-")[0])


def first_deliveries(member: NativeProcess) -> set[str]:
    """Without what came again because somebody was slow to take it."""
    return {line["body"] for line in member.lines() if line["reconsume_times"] == 0}


@pytest.fixture
async def house(cluster: Any, tmp_path: Path, fresh: Callable[[str], str]) -> AsyncIterator[House]:
    async with House(cluster, tmp_path, fresh) as opened:
        yield opened


@pytest.mark.java
async def test_nothing_is_lost_while_members_join_leave_and_die(house: House) -> None:
    stream = house.stream()
    await eventually(stream.lines, CONSUMED_WITHIN_S, "the first message")
    house.join()
    house.join()
    await house.await_division(2, 2)
    await house.await_everybody_reads()
    house.join()
    await house.await_division(2, 1, 1)
    await house.await_everybody_reads()
    # The one that stays never had to give up the retry queue: librocketmq waits in its rebalance for its earlier pull
    # of a queue that it gets back, up to 20 s; asked for its running info then, on two cores, it stands still for good.
    stays, leaves, dies = house.by_client_id()
    house.leave(leaves)
    await house.await_division(2, 2)
    await house.await_everybody_reads()
    house.die(dies)
    await house.await_division(4)
    await house.await_everybody_reads()
    results = stream.stop()
    assert {result["status"] for result in results} == {"OK"}
    sent = {f"stream-{result['number']}" for result in results}
    await house.await_consumed(sent)
    assert house.consumed() == sent
    assert house.members == [stays]


@pytest.mark.java
async def test_new_members_go_on_where_the_last_ones_stopped(house: House) -> None:
    early = await house.send("early")
    first, second = house.join(), house.join()
    await house.await_division(2, 2)
    # A member that gave up a queue waits, when it ends, for the pull that the broker still holds for it: wake it.
    early |= await house.send("woken")
    await house.await_consumed(early)
    await house.await_progress(len(early))
    house.leave(first)
    house.leave(second)
    assert await house.progress() == len(early)
    late = await house.send("late")
    third, fourth = house.join(), house.join()
    await house.await_consumed(early | late)
    assert first_deliveries(third) | first_deliveries(fourth) == late


async def test_progress_and_members_outlive_a_kill_of_our_broker(tmp_path: Path, fresh: Callable[[str], str]) -> None:
    with OurBroker(tmp_path / "store", patient=True) as broker:
        async with House(broker, tmp_path, fresh) as house:
            early = await house.send("early")
            first = house.join()
            await house.await_consumed(early)
            await house.await_progress(len(early))
            house.leave(first)
            left = await house.send("left")

            def is_saved() -> bool:
                file = broker.store / "config/consumerOffset.json"
                offsets = read_committed_offsets(file.read_bytes()) if file.exists() else {}
                return sum(offsets.get((house.topic, house.group), {}).values()) == len(early)

            await eventually(is_saved, what="saved progress")
            broker.kill()
            await asyncio.to_thread(broker.start)
            second = house.join()
            await house.await_consumed(early | left)
            assert first_deliveries(second) == left
            broker.kill()
            await asyncio.to_thread(broker.start)
            new = await house.send("new")
            await house.await_division(4)
            await house.await_consumed(early | left | new)
