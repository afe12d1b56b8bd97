"""Pull, lite-pull and broadcasting consumers of Apache's Java clients, and every answer that a pull can get."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import Scene, bodies, plays
from tests.support.java_client import message_queue
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[..., Any]
# Nobody outside Apache's broker sees a held pull; a request takes some ms.
HELD_AFTER_S = 0.7


def answer(scene: Scene, result: Any) -> Any:
    """A pull's result without the messages' details, or its refusal."""
    return {**result, "messages": bodies(result["messages"])} if "messages" in result else result


def pull_answers(scene: Scene) -> Any:
    java, topic, empty = scene.java, scene.topic(), scene.topic("empty")
    unreadable = scene.topic("unreadable", perm=2)
    producer, puller = scene.producer(), scene.client("puller")
    for number, tag in enumerate(("red", "green", "red", "blue")):
        java.send(producer, topic, body="m", first=number, tag=tag, properties={"size": number})
    java.pull_consumer(puller, scene.group())

    def pull(of: str, queue_offset: int, *, queue: int = 0, tags: Any = "*", count: int = 32) -> Any:
        asked = (message_queue(of, queue), tags, queue_offset, count)
        return answer(scene, scene.refusal(lambda: java.invoke(puller, "pull", *asked)))

    return {
        "all": pull(topic, 0),
        "two": pull(topic, 0, count=2),
        "by tag": pull(topic, 0, tags="red"),
        "by two tags": pull(topic, 0, tags="green || blue"),
        "no such tag": pull(topic, 1, tags="none"),
        "at the end": pull(topic, 4),
        "beyond the end": pull(topic, 9),
        "far beyond the end": pull(topic, 2**40),
        "before the start": pull(topic, -1),
        "empty topic": pull(empty, 0),
        "beyond an empty topic": pull(empty, 5),
        "queue beyond the topic's": pull(topic, 0, queue=7),
        "unknown topic": pull("no-such-topic", 0),
        "topic without read permission": pull(unreadable, 0),
    }


@plays(pull_answers)
def test_a_pull_gets_the_same_answer_for_every_offset_filter_and_mistake(seen: Seen) -> None:
    told = seen()
    assert told["all"]["messages"] == ["m0", "m1", "m2", "m3"]
    assert told["two"]["messages"] == ["m0", "m1"]
    assert told["by tag"]["messages"] == ["m0", "m2"]
    assert told["by two tags"]["messages"] == ["m1", "m3"]
    status = {case: result.get("status", result.get("code")) for case, result in told.items()}
    assert status["no such tag"] == "NO_MATCHED_MSG"
    assert status["at the end"] == status["empty topic"] == "NO_NEW_MSG"
    assert status["beyond the end"] == status["far beyond the end"] == "OFFSET_ILLEGAL"
    assert status["topic without read permission"] == 16
    assert told["far beyond the end"]["next_offset"] == 4


def pulls_by_sql(scene: Scene) -> Any:
    java, topic = scene.java, scene.topic()
    producer, puller = scene.producer(), scene.client("puller")
    for number in range(4):
        java.send(producer, topic, body="m", first=number, properties={"size": number})
    # A client sends SQL only to a broker whose version it has heard of, in the answer to a heartbeat.
    java.pull_consumer(puller, scene.group(), registerTopics=[topic], heartbeatBrokerInterval=1_000)

    def pull(sql: str) -> Any:
        asked = (message_queue(topic), {"sql": sql}, 0, 32)
        return answer(scene, scene.refusal(lambda: java.invoke(puller, "pull", *asked)))

    wait_until(lambda: "status" in pull("size > 1"), 15, "the broker's version")
    return {sql: pull(sql) for sql in ("size > 1", "size > 100", "size >")}


@plays(pulls_by_sql)
def test_a_pull_by_sql_gets_what_matches_and_ours_refuses_what_cannot_be_read(seen: Seen) -> None:
    told = seen(but={"size >": {"kind": "MQBrokerException", "code": 23}})
    assert told["size > 1"]["messages"] == ["m2", "m3"]
    assert told["size > 100"]["status"] == "NO_MATCHED_MSG"
    assert told["size >"]["messages"] == ["m0", "m1", "m2", "m3"], "Apache lets everything through"


def a_pull_that_waits(scene: Scene) -> Any:
    java, topic = scene.java, scene.topic()
    producer, puller = scene.producer(), scene.client("puller")
    java.pull_consumer(puller, scene.group())
    java.send(producer, topic, body="old-")
    scene.pull(puller, topic, 0)  # so that the connection is there

    def wait_from(queue_offset: int) -> int:
        asked = [message_queue(topic), "red", queue_offset, 32]
        return java.post("call", name=puller, method="pullBlockIfNotFound", arguments=asked)

    waiting = wait_from(1)
    time.sleep(HELD_AFTER_S)
    java.send(producer, topic, body="green-", tag="green")
    java.send(producer, topic, body="red-", tag="red")
    told = java.answer(waiting)
    while told["status"] == "NO_MATCHED_MSG":  # Apache's broker wakes all that are held every 5 s
        told = java.answer(wait_from(told["next_offset"]))
    return answer(scene, told)


@plays(a_pull_that_waits)
def test_a_pull_that_found_nothing_waits_for_what_its_filter_lets_through(seen: Seen) -> None:
    told = seen()
    assert (told["status"], told["messages"]) == ("FOUND", ["red-0"])


def progress_by_hand(scene: Scene) -> Any:
    java, group, topic = scene.java, scene.group(), scene.topic()
    producer, puller = scene.producer(), scene.client("puller")
    java.send(producer, topic, count=5)
    java.pull_consumer(puller, group, registerTopics=[topic])
    at = message_queue(topic)

    def stored() -> Any:
        return java.invoke(puller, "fetchConsumeOffset", at, True)

    told: dict[str, Any] = {"before": stored()}
    java.invoke(puller, "updateConsumeOffset", at, 3)
    told["in memory"] = java.invoke(puller, "fetchConsumeOffset", at, False)
    java.invoke(puller, "persist", at)
    scene.stop(puller)
    told["committed"] = scene.committed(group, topic)
    puller = scene.client("second")
    java.pull_consumer(puller, group, registerTopics=[topic])
    told["after"] = stored()
    told["queues"] = [each["queue_id"] for each in java.invoke(puller, "fetchSubscribeMessageQueues", topic)]
    told["edges"] = [java.invoke(puller, edge, at) for edge in ("minOffset", "maxOffset")]
    told["of the future"] = java.invoke(puller, "searchOffset", at, 2**41)
    told["of the past"] = java.invoke(puller, "searchOffset", at, 0)
    return told


@plays(progress_by_hand)
def test_a_pull_consumer_keeps_its_progress_at_the_broker(seen: Seen) -> None:
    told = seen()
    assert told["in memory"] == 3
    assert told["committed"] == {0: 3}
    assert (told["after"], told["queues"], told["edges"]) == (3, [0], [0, 5])


def lite_pull_of_a_group(scene: Scene) -> Any:
    """Subscribes, polls, commits by hand; another member goes on where it stopped."""
    java, group, topic = scene.java, scene.group(), scene.topic(queues=2)
    producer = scene.producer()
    for queue in range(2):
        java.send(producer, topic, body=f"{queue}-", count=4, queue=queue, tag="red" if queue else "green")

    def poll(name: str, count: int) -> list[str]:
        got: list[str] = []
        wait_until(lambda: got.extend(bodies(java.invoke(name, "poll", 500))) or len(got) >= count, 30, "polled")
        return sorted(got)

    first = scene.client("first")
    java.lite_pull_consumer(first, group, topic, autoCommit=False)
    told: dict[str, Any] = {"first": poll(first, 8)}
    java.invoke(first, "commitSync")
    wait_until(lambda: sum(scene.committed(group, topic).values()) == 8, 30, "progress")
    scene.stop(first)
    java.send(producer, topic, body="new-", count=2, queue=1, tag="red")
    second = scene.client("second")
    java.lite_pull_consumer(second, group, {"topic": topic, "expression": "red"}, autoCommit=True)
    told["second"] = poll(second, 2)
    java.invoke(second, "commitSync")
    wait_until(lambda: sum(scene.committed(group, topic).values()) == 10, 10, "progress")
    scene.stop(second)
    told["committed"] = scene.committed(group, topic)
    return told


@plays(lite_pull_of_a_group)
def test_lite_pull_members_share_a_groups_progress(seen: Seen) -> None:
    assert seen() == {
        "first": sorted(f"{queue}-{number}" for queue in range(2) for number in range(4)),
        "second": ["new-0", "new-1"],
        "committed": {0: 4, 1: 6},
    }


def lite_pull_of_queues(scene: Scene) -> Any:
    """Assigned queues: seek to a number, to both ends, to a time; pause and go on; commit an offset of one's own."""
    java, group, topic = scene.java, scene.group(), scene.topic(queues=2)
    producer, name = scene.producer(), scene.client("lite")
    at, other = message_queue(topic, 0), message_queue(topic, 1)
    java.send(producer, topic, body="m", count=5, queue=0)
    java.lite_pull_consumer(name, group, autoCommit=False, pullBatchSize=2)
    java.invoke(name, "assign", [at, other])

    def last_of_poll(until: str) -> list[str]:
        got: list[str] = []
        wait_until(lambda: got.extend(bodies(java.invoke(name, "poll", 300))) or until in got, 15, f"polled {until}")
        return got

    told: dict[str, Any] = {"from the start": last_of_poll("m4")}
    java.invoke(name, "seek", at, 3)
    told["from 3"] = last_of_poll("m4")
    java.invoke(name, "seekToBegin", at)
    told["from the beginning"] = last_of_poll("m4")
    java.invoke(name, "seekToEnd", at)
    java.send(producer, topic, body="new-", queue=0)
    told["from the end"] = last_of_poll("new-0")
    told["beyond the end"] = scene.refusal(lambda: java.invoke(name, "seek", at, 99))
    java.invoke(name, "pause", [at])
    java.send(producer, topic, body="caught-", queue=0)  # by the pull that was on its way
    told["on its way"] = last_of_poll("caught-0")
    java.send(producer, topic, body="paused-", queue=0)
    java.send(producer, topic, body="other-", queue=1)
    told["while the other is paused"] = last_of_poll("other-0")
    java.invoke(name, "resume", [at])
    told["resumed"] = last_of_poll("paused-0")
    java.invoke(name, "commitSync", [[at, 4]], True)
    told["committed"] = wait_until(lambda: scene.committed(group, topic), 10, "progress")
    told["committed as told"] = java.invoke(name, "committed", at)
    told["of a time"] = [java.invoke(name, "offsetForTimestamp", at, moment) for moment in (0, 2**41)]
    told["queues"] = sorted(each["queue_id"] for each in java.invoke(name, "fetchMessageQueues", topic))
    return told


@plays(lite_pull_of_queues)
def test_a_lite_pull_consumer_of_assigned_queues_seeks_pauses_and_commits(seen: Seen) -> None:
    told = seen()
    assert told["from the start"] == told["from the beginning"] == [f"m{number}" for number in range(5)]
    assert told["from 3"] == ["m3", "m4"]
    assert told["from the end"] == ["new-0"]
    assert told["beyond the end"]["kind"] == "MQClientException"
    assert told["while the other is paused"] == ["other-0"]
    assert told["resumed"] == ["paused-0"]
    assert told["committed"][0] == told["committed as told"] == 4


def broadcast(scene: Scene) -> Any:
    """Each member gets each message, a failed one is not repeated, and the broker keeps no progress."""
    java, group, topic = scene.java, scene.group(), scene.topic(queues=2)
    producer = scene.producer()
    settings = {"set": {"messageModel": "BROADCASTING"}}
    members = [
        scene.consumer(group, topic, "first", **settings, outcomes={"m1": ["later"]}),
        scene.consumer(group, topic, "second", **settings),
    ]
    for member in members:
        scene.holds(member, topic, 2)
    java.send(producer, topic, body="m", count=6)
    for member in members:
        java.wait_consumed(6, member)
    (connection,) = {each["messageModel"] for each in [java.admin("connections", group=group)]}
    for member in members:
        scene.stop(member)
    return {
        "first": sorted(bodies(java.consumed(members[0]))),
        "second": sorted(bodies(java.consumed(members[1]))),
        "committed": {queue: offset for queue, offset in scene.committed(group, topic).items() if offset > 0},
        "model": connection,
    }


@plays(broadcast)
def test_a_broadcast_reaches_every_member_once_and_leaves_no_progress(seen: Seen) -> None:
    all_of_them = [f"m{number}" for number in range(6)]
    assert seen() == {"first": all_of_them, "second": all_of_them, "committed": {}, "model": "BROADCASTING"}
