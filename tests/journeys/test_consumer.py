"""Our consumer against our broker and against Apache's: a journey must see the same on both."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from consumer.engine import rebalance
from consumer.engine.message import Message
from consumer.engine.outcomes import DeadLetter, Later
from tests.journeys.conftest import Cluster
from tests.journeys.refusals import Refusals
from tests.journeys.return_delays import assert_delayed
from tests.journeys.shop import ALL_QUEUES, WARM_UP, Shop, into
from tests.support.children import Child
from tests.support.failure_reasons import read_reason
from tests.support.java_client import JavaClient
from tests.support.our_broker import OurBroker
from tests.support.reading import stored_messages
from tests.support.waiting import eventually, wait_until

pytestmark = [pytest.mark.journey]

ROOT = Path(__file__).parents[2]
# So seldom that a member of ours takes queues over only because it was told to.
SELDOM_MS = 3_600_000
# A new group's retry topic may be there only for its second rebalance.
RETRY_QUEUE_WITHIN_S = 120.0


@pytest.fixture(autouse=True)
def _a_refusal_is_under_way(request: pytest.FixtureRequest, refusals: Refusals) -> None:
    """test_consumer_late.py judges after its 40 s what begins here."""
    if "cluster" in request.fixturenames:
        refusals.begin(request.getfixturevalue("cluster"))


@pytest.fixture
def told(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """On our broker members rebalance when they hear of others that come and go, and never by the clock."""
    if cluster.name == "ours":
        monkeypatch.setattr(rebalance, "INTERVAL_MS", SELDOM_MS)


@pytest.mark.usefixtures("told")
async def test_members_share_the_queues_when_a_third_joins_and_when_one_leaves(shop: Shop) -> None:
    bodies: list[str] = []
    first = await shop.join(into(bodies))
    await eventually(lambda: shop.queues(first) == ALL_QUEUES)
    second = await shop.join(into(bodies))
    await eventually(lambda: len(shop.queues(first)) == len(shop.queues(second)) == 2)
    third = await shop.join(into(bodies))

    def shares() -> list[set[int]]:
        return sorted((shop.queues(one) for one in (first, second, third)), key=len)

    await eventually(lambda: [len(share) for share in shares()] == [1, 1, 2] and set().union(*shares()) == ALL_QUEUES)
    await shop.leave(second)
    await eventually(lambda: len(shop.queues(first)) == len(shop.queues(third)) == 2)
    sent = [f"order {number}" for number in range(40)]
    await shop.send(*sent)
    await eventually(lambda: len(bodies) >= 40)
    assert Counter(bodies) == Counter(sent)


async def test_progress_is_taken_up_where_a_stopped_group_left_it(shop: Shop) -> None:
    bodies: list[str] = []
    member = await shop.join(into(bodies))
    await shop.send(*[f"early {number}" for number in range(20)])
    await eventually(lambda: len(bodies) == 20)
    await shop.leave(member)
    assert await shop.committed() == 20
    await shop.send(*[f"late {number}" for number in range(20)])

    def listen(message: Message) -> None:
        bodies.append(message.text)

    await shop.join(listen, is_async=False)
    await eventually(lambda: len(bodies) >= 40)
    assert len(set(bodies)) == len(bodies) == 40


async def test_a_listener_says_when_a_message_comes_again_and_that_it_is_dead(shop: Shop) -> None:
    """At level 1, after a second; RocketMQ's first retry would come after ten."""
    taken: dict[str, list[int]] = {}
    failed_ms: dict[str, int] = {}

    def listen(messages: list[Message]) -> None:
        now_ms = time.time_ns() // 1_000_000
        for count, message in enumerate(messages):
            if message.text == WARM_UP:
                continue
            taken.setdefault(message.text, []).append(message.reconsume_times)
            if message.text == "unreadable":
                raise DeadLetter("no order at all")
            if message.text.startswith("busy") and message.reconsume_times == 0:
                failed_ms[message.text] = now_ms
                raise Later("the bank is busy", delay_level=1, consumed=count)

    member = await shop.join(listen, is_async=False, batch_size=8)
    retries = f"%RETRY%{shop.group}"
    await eventually(lambda: any(queue.topic == retries for queue in member.queues), RETRY_QUEUE_WITHIN_S)
    await shop.send("good", "busy 1", "good 2", "busy 2")
    await eventually(lambda: all(taken.get(body, [0])[-1] == 1 for body in ("busy 1", "busy 2")))
    returns = await asyncio.to_thread(stored_messages, shop.cluster.broker, retries)
    assert sorted(message.body for message in returns) == [b"busy 1", b"busy 2"]
    for message in returns:
        body = message.body.decode()
        assert taken[body][0] == 0
        assert message.unique_key is not None
        stored_ms, address = [message.store_timestamp_ms], shop.cluster.broker
        await asyncio.to_thread(assert_delayed, address, message.unique_key, [failed_ms[body]], stored_ms, [1])
    # By itself: what fails takes along what is behind it in its batch.
    await shop.send("unreadable")
    dead_letters = f"%DLQ%{shop.group}"
    [dead] = await asyncio.to_thread(
        wait_until, lambda: stored_messages(shop.cluster.broker, dead_letters), what="the dead letter"
    )
    assert (dead.body, dead.properties["RETRY_TOPIC"]) == (b"unreadable", shop.topic)
    if shop.cluster.name == "ours":
        reason = read_reason(dead.properties)
        assert reason is not None
        assert (reason.exception, reason.text) == ("consumer.engine.outcomes.DeadLetter", "no order at all")
    await eventually(lambda: {"good", "good 2"} <= set(taken))


async def test_messages_that_the_tags_filter_out_do_not_hold_up_progress(shop: Shop) -> None:
    bodies: list[str] = []
    await shop.send(*["no"] * 16, tags="created")
    await shop.send(*["yes"] * 8, tags="paid")
    await shop.send(*["no"] * 16, tags="created")
    member = await shop.join(into(bodies), tags="paid || refunded")
    await eventually(lambda: len(bodies) >= 8)

    def progress() -> int:
        queues = member.running_info().queues
        return sum(info.commit_offset for queue, info in queues.items() if queue.topic == shop.topic)

    await eventually(lambda: progress() == 41)
    await shop.leave(member)
    assert await shop.committed() == 40
    assert bodies == ["yes"] * 8


@pytest.mark.usefixtures("told")
async def test_the_queues_of_a_killed_process_are_consumed_by_the_others_at_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The other member is `manage.py runconsumer` of the example shop, as a user would run it."""
    shop = Shop(cluster, "orders", "mailing")
    await shop.open()
    try:
        bodies: list[str] = []
        member = await shop.join(into(bodies))
        await eventually(lambda: shop.queues(member) == ALL_QUEUES)
        bodies.clear()
        command = [sys.executable, "manage.py", "runconsumer", "mailing", "--namesrv", cluster.namesrv]
        other = Child(command, tmp_path / "other.log", cwd=ROOT, env={"MQADMIN_APPS": "examples.shop"})
        try:
            await eventually(lambda: len(shop.queues(member)) == 2, what="the other member's half")
            os.kill(other.pid, signal.SIGKILL)
            await shop.send(*[f"{number}" for number in range(16)])
            await eventually(lambda: len(bodies) >= 16)
        finally:
            other.kill()
    finally:
        await shop.close()


@pytest.mark.java
async def test_a_group_is_shared_with_a_java_member(java: JavaClient, shop: Shop, fresh: Callable[[str], str]) -> None:
    bodies: list[str] = []
    name = fresh("java-member")

    def java_bodies() -> list[str]:
        return [event["body"] for event in java.consumed(name) if event["body"] != WARM_UP]

    member = await shop.join(into(bodies))
    await eventually(lambda: shop.queues(member) == ALL_QUEUES)
    java.consumer(name, shop.group, shop.topic)
    try:
        await eventually(lambda: len(shop.queues(member)) == 2)
        await eventually(lambda: java.queues(name, shop.topic) == ALL_QUEUES - shop.queues(member))
        await shop.send(*[f"order {number}" for number in range(40)])
        await eventually(lambda: len(bodies) + len(java_bodies()) >= 40)
        assert len(bodies) == len(java_bodies()) == 20
    finally:
        java.stop(name)
    await eventually(lambda: shop.queues(member) == ALL_QUEUES)


@pytest.mark.java
async def test_a_java_tool_reads_what_our_member_says_of_itself(java: JavaClient, shop: Shop) -> None:
    bodies: list[str] = []
    member = await shop.join(into(bodies))
    await shop.send(*["x"] * 16)
    await eventually(lambda: len(bodies) == 16)
    info = await asyncio.to_thread(java.running_info, shop.group, member.client_id)
    assert shop.topic in str(info["mqTable"])


async def test_a_group_goes_on_by_itself_after_its_broker_was_killed_and_started_again(tmp_path: Path) -> None:
    bodies: list[str] = []
    with OurBroker(tmp_path / "store", patient=True) as broker:
        shop = Shop(broker, "orders", "billing")
        await shop.open()
        try:
            first, second = await shop.join(into(bodies)), await shop.join(into(bodies))
            await eventually(lambda: len(shop.queues(first)) == len(shop.queues(second)) == 2)
            await shop.send(*[f"before {number}" for number in range(20)])
            await eventually(lambda: len(bodies) == 20)
            broker.kill()
            await asyncio.to_thread(broker.start)
            await shop.send(*[f"after {number}" for number in range(20)])
            await eventually(lambda: len({body for body in bodies if body.startswith("after")}) == 20)
            # The broker forgot its members; neither gave up what it had, nor took the other's for good.
            await eventually(lambda: len(shop.queues(first)) == len(shop.queues(second)) == 2)
            assert not shop.queues(first) & shop.queues(second)
        finally:
            await shop.close()


async def test_runconsumer_ends_cleanly_on_ctrl_c(cluster: Cluster, tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "runconsumer", "billing", "--namesrv", cluster.namesrv]
    child = Child(command, tmp_path / "billing.log", cwd=ROOT, env={"MQADMIN_APPS": "examples.shop"})
    try:
        await eventually(lambda: "member" in child.output() or not child.is_running)
        os.kill(child.pid, signal.SIGINT)
        await eventually(lambda: not child.is_running)
    finally:
        child.kill()
    assert child.process.returncode == 0, child.output()
    assert child.output().rstrip().endswith("group billing stopped")
    assert "Traceback" not in child.output()
