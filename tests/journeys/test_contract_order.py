"""Ordered consumption, as Apache's Java clients see it: one place and one order per queue, whoever joins or fails."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, bodies, compares, gaps_ms
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[[], Any]
SUSPEND_MS = 300
# Client 4.9.8 keeps the lock of a busy queue for 20 s after it gave it up, and the next one asks every 20 s.
HANDED_OVER_WITHIN_S = 150.0


def two_members(run: ScenarioRun) -> Any:
    """Three queues; a second member joins while the first consumes, and the first leaves again."""
    java, group, topic = run.java, run.group(), run.topic(queues=3)
    producer = run.producer()

    def send(first: int, count: int) -> None:
        for queue in range(3):
            java.send(producer, topic, body=f"{queue}-", first=first, count=count, queue=queue)

    send(0, 8)
    members = [run.consumer(group, topic, "first", orderly=True, sleep_ms=40, ends=True)]
    java.wait_consumed(4, members[0])
    members.append(run.consumer(group, topic, "second", orderly=True, sleep_ms=40, ends=True))
    run.wait_for_queues(members[0], topic, 2, HANDED_OVER_WITHIN_S)
    run.wait_for_queues(members[1], topic, 1, HANDED_OVER_WITHIN_S)
    send(8, 8)
    wait_until(lambda: len({each["body"] for each in java.events("finished", *members)}) == 48, what="all 48 finished")
    run.stop(members[0])
    run.wait_for_queues(members[1], topic, 3, HANDED_OVER_WITHIN_S)
    send(16, 2)
    wait_until(lambda: len({each["body"] for each in java.events("finished", *members)}) == 54, what="all 54 finished")
    return {"order": first_deliveries(java, members), "overlaps": overlaps(java, members)}


def first_deliveries(java: Any, members: list[str]) -> dict[int, list[str]]:
    """Queue → bodies in the order in which each came first: a queue that moves may bring the last one again."""
    came: dict[int, dict[str, None]] = defaultdict(dict)
    for event in sorted(java.consumed(*members), key=lambda event: event["at_ms"]):
        came[event["queue_id"]].setdefault(event["body"])
    return {queue: list(order) for queue, order in sorted(came.items())}


def overlaps(java: Any, members: list[str]) -> int:
    """How often a queue's listener began somewhere while it ran elsewhere."""
    events = sorted(java.events("finished", *members) + java.consumed(*members), key=lambda event: event["at_ms"])
    running: dict[int, str] = {}
    count = 0
    for event in events:
        queue = event["queue_id"]
        if event["event"] == "finished":
            running.pop(queue, None)
        else:
            count += running.get(queue, event["consumer"]) != event["consumer"]
            running[queue] = event["consumer"]
    return count


@compares(two_members)
def test_an_ordered_queue_runs_in_one_place_and_in_order_while_members_come_and_go(seen: Seen) -> None:
    assert seen() == {
        "order": {queue: [f"{queue}-{number}" for number in range(18)] for queue in range(3)},
        "overlaps": 0,
    }


def a_refused_message(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    java.send(producer, topic, body="m", count=3)
    name = run.consumer(
        group, topic, orderly=True, suspend_ms=SUSPEND_MS, outcomes={"m1": ["later", "throw", "null", "ok"]}
    )
    came = java.wait_consumed(6, name)
    wait_until(lambda: run.committed(group, topic) == {0: 3}, what="progress")
    run.stop(name)
    return {
        "committed": run.committed(group, topic),
        "deliveries": [(each["body"], each["reconsume_times"]) for each in came],
        "waited": all(gap >= SUSPEND_MS for gap in gaps_ms(came[1:5])),
        "topics": sorted({run.normalized(each["topic"]) for each in came}),
    }


@compares(a_refused_message)
def test_a_refused_message_holds_its_queue_until_it_is_accepted(seen: Seen) -> None:
    assert seen() == {
        "deliveries": [("m0", 0), ("m1", 0), ("m1", 1), ("m1", 2), ("m1", 3), ("m2", 0)],
        "waited": True,
        "committed": {0: 3},
        "topics": ["topic"],
    }


def refused_for_good(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    java.send(producer, topic, body="m", count=3, tag="tag", keys="k", properties={"colour": "red"})
    name = run.consumer(group, topic, orderly=True, suspend_ms=100, max_reconsume_times=2, outcomes={"m1": ["later"]})
    wait_until(lambda: "m2" in bodies(java.consumed(name)), what="the message behind the refused one")
    dead_topic = f"%DLQ%{group}"
    java.wait_routed(dead_topic)
    puller = run.client("puller")
    java.pull_consumer(puller, run.shared("pullers"))
    dead = wait_until(lambda: run.pull(puller, dead_topic, 0)["messages"], what="the dead letter")
    return {
        "deliveries": [(each["body"], each["reconsume_times"]) for each in java.consumed(name)],
        "dead": [run.comparable(each) for each in dead],
    }


@compares(refused_for_good)
def test_an_ordered_group_gives_up_a_message_after_its_limit_and_goes_on(seen: Seen) -> None:
    observed = seen()
    assert observed["deliveries"] == [("m0", 0), ("m1", 0), ("m1", 1), ("m1", 2), ("m2", 0)]
    (dead,) = observed["dead"]
    assert (dead["body"], dead["tags"], dead["keys"]) == ("m1", "tag", "k1")
    assert dead["topic"] == "%DLQ%group"
    assert dead["properties"]["colour"] == "red"
    assert dead["properties"]["RETRY_TOPIC"] == "topic"


def commit_by_hand(run: ScenarioRun) -> Any:
    """autoCommit off: success alone doesn't move progress; commit does, rollback brings the batch again."""
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    by_hand = {"context": {"autoCommit": False}}
    name = run.consumer(
        group,
        topic,
        orderly=True,
        suspend_ms=100,
        outcomes={
            "m1": [{"do": "rollback", **by_hand}, {"do": "commit", **by_hand}],
            "*": [{"do": "ok", **by_hand}],
        },
    )
    run.wait_for_queues(name, topic)
    java.send(producer, topic, body="m", count=3)
    came = wait_until(lambda: found if "m2" in bodies(found := java.consumed(name)) else None, what="the last one")
    wait_until(lambda: run.committed(group, topic) == {0: 2}, what="the progress of the commit")
    run.stop(name)
    return {"deliveries": bodies(came), "committed": run.committed(group, topic)}


@compares(commit_by_hand)
def test_progress_that_is_committed_by_hand_moves_only_with_the_commit(seen: Seen) -> None:
    observed = seen()
    assert observed["committed"] == {0: 2}
    assert observed["deliveries"][-1] == "m2"
