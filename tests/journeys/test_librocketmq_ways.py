"""librocketmq's further ways of sending and consuming: order, tags, broadcasting, delay, pulling; on both brokers.

The wheel gives Python no transactions, no SQL92 and no limit of returns. On both brokers an orderly listener's refusal
is not repeated, and a member that ends keeps its locks until they expire.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.librocketmq import NativeProcess, require_librocketmq
from tests.support.reading import message_count
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.native]

Fresh = Callable[[str], str]
Start = Callable[..., NativeProcess]
# A member that nobody tells looks for its queues every 20 s.
CONSUMED_WITHIN_S = 150.0
ORDERS, EACH = 3, 4
QUEUE_COUNT = 4


@pytest.fixture
def start(cluster: Any, tmp_path: Path) -> Iterator[Start]:
    require_librocketmq()
    started: list[NativeProcess] = []

    def run(action: str, *words: str | int) -> NativeProcess:
        started.append(NativeProcess(tmp_path, action, cluster.namesrv, *words))
        return started[-1]

    yield run
    for process in started:
        process.kill()


def wait_bodies(bodies: set[str], *processes: NativeProcess) -> None:
    def are_here() -> bool:
        return bodies <= {line["body"] for process in processes for line in process.lines()}

    wait_until(are_here, CONSUMED_WITHIN_S, f"all of {sorted(bodies)}")


def orders(first: int, end: int) -> set[str]:
    return {f"order{order}-{number}" for order in range(ORDERS) for number in range(first, end)}


def test_an_orderly_member_takes_each_order_in_order(start: Start, fresh: Fresh) -> None:
    topic, group = fresh("native-ordered"), fresh("group")
    results = start("order", fresh("senders"), topic, EACH).ended()
    assert {result["status"] for result in results} == {"OK"}
    member = start("member", group, topic, "orderly")
    wait_bodies(orders(0, EACH), member)
    taken = defaultdict(list)
    for line in member.stop():
        taken[line["tags"]].append((line["body"], line["queue_id"]))
    for order in range(ORDERS):
        assert taken[f"order{order}"] == [(f"order{order}-{number}", order) for number in range(EACH)]


def test_a_tag_expression_lets_only_its_tags_through(start: Start, fresh: Fresh) -> None:
    topic, group = fresh("native-tags"), fresh("group")
    start("order", fresh("senders"), topic, EACH).ended()
    member = start("member", group, topic, "clustering", "order0 || order2")
    wanted = {f"order{order}-{number}" for order in (0, 2) for number in range(EACH)}
    wait_bodies(wanted, member)
    assert {line["body"] for line in member.stop()} == wanted


def test_broadcasting_members_get_everything(start: Start, fresh: Fresh) -> None:
    topic, group = fresh("native-broadcast"), fresh("group")
    stream = start("stream", fresh("senders"), topic)
    wait_until(stream.lines, CONSUMED_WITHIN_S, "the first message")
    members = [start("member", group, topic, "broadcasting") for _ in range(2)]
    # Each begins at the end of a queue, wherever that is when it gets to it.
    for member in members:
        wait_until(lambda member=member: in_all_queues(member), CONSUMED_WITHIN_S, "a message of each queue")
    stream.stop()
    start("order", fresh("senders"), topic, EACH).ended()
    for member in members:
        wait_bodies(orders(0, EACH), member)


def in_all_queues(member: NativeProcess) -> bool:
    return {line["queue_id"] for line in member.lines()} == set(range(QUEUE_COUNT))


def test_a_delayed_message_comes_at_its_time_and_not_before(start: Start, fresh: Fresh) -> None:
    topic, group = fresh("native-delayed"), fresh("group")
    start("order", fresh("senders"), topic, 1).ended()
    member = start("member", group, topic)
    wait_bodies(orders(0, 1), member)
    sent, result = start("delay", fresh("senders"), topic, 2).ended()
    wait_bodies({"delayed-2"}, member)
    (late,) = [line for line in member.stop() if line["body"] == "delayed-2"]
    assert late["msg_id"] == result["msg_id"]
    assert late["at_ms"] - sent["sent_ms"] >= 5000


def test_a_pull_consumer_pulls_all_there_is(cluster: Any, start: Start, fresh: Fresh) -> None:
    topic, group = fresh("native-pulled"), fresh("group")
    start("order", fresh("senders"), topic, EACH).ended()
    # Apache's broker queues messages a little after it has answered their sender.
    wait_until(lambda: [message_count(cluster.broker, topic, order) for order in range(ORDERS)] == [EACH] * ORDERS)
    lines = start("pull", group, topic).ended()
    assert {line["body"] for line in lines} == orders(0, EACH)
    assert len(lines) == ORDERS * EACH
