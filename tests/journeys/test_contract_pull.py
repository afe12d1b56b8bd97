"""Pull, lite-pull and broadcasting consumers of Apache's Java clients, and every answer that a pull can get."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, bodies, compares
from tests.support.java_client import message_queue
from tests.support.reading import wait_stored
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[..., Any]
# Nobody outside Apache's broker sees a held pull; a request takes some ms.
HELD_AFTER_S = 0.7


def answer(run: ScenarioRun, result: Any) -> Any:
    """A pull's result without the messages' details, or its refusal."""
    return {**result, "messages": bodies(result["messages"])} if "messages" in result else result


def pull_answers(run: ScenarioRun) -> Any:
    java, topic, empty = run.java, run.topic(), run.topic("empty")
    unreadable = run.topic("unreadable", perm=2)
    producer, puller = run.producer(), run.client("puller")
    for number, tag in enumerate(("red", "green", "red", "blue")):
        java.send(producer, topic, body="m", first=number, tag=tag, properties={"size": number})
    wait_stored(run.broker, topic, 4)
    java.pull_consumer(puller, run.group())

    def pull(of: str, queue_offset: int, *, queue: int = 0, tags: Any = "*", count: int = 32) -> Any:
        asked = (message_queue(of, queue), tags, queue_offset, count)
        return answer(run, run.refusal(lambda: java.invoke(puller, "pull", *asked)))

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


@compares(pull_answers)
def test_a_pull_gets_the_same_answer_for_every_offset_filter_and_mistake(seen: Seen) -> None:
    observed = seen()
    assert observed["all"]["messages"] == ["m0", "m1", "m2", "m3"]
    assert observed["two"]["messages"] == ["m0", "m1"]
    assert observed["by tag"]["messages"] == ["m0", "m2"]
    assert observed["by two tags"]["messages"] == ["m1", "m3"]
    status = {case: result.get("status", result.get("code")) for case, result in observed.items()}
    assert status["no such tag"] == "NO_MATCHED_MSG"
    assert status["at the end"] == status["empty topic"] == "NO_NEW_MSG"
    assert status["beyond the end"] == status["far beyond the end"] == "OFFSET_ILLEGAL"
    assert status["topic without read permission"] == 16
    assert observed["far beyond the end"]["next_offset"] == 4


def pulls_by_sql(run: ScenarioRun) -> Any:
    java, topic = run.java, run.topic()
    producer, puller = run.producer(), run.client("puller")
    for number in range(4):
        java.send(producer, topic, body="m", first=number, properties={"size": number})
    wait_stored(run.broker, topic, 4)
    # A client sends SQL only to a broker whose version it has heard of, in the answer to a heartbeat.
    java.pull_consumer(puller, run.group(), registerTopics=[topic], heartbeatBrokerInterval=1_000)

    def pull(sql: str) -> Any:
        """Ours ends a scan after 10 ms, which on a busy machine may have passed before the second message."""

        def refused_or_scanned_whole() -> Any:
            asked = (message_queue(topic), {"sql": sql}, 0, 32)
            result = answer(run, run.refusal(lambda: java.invoke(puller, "pull", *asked)))
            return result if "code" in result or result["next_offset"] == 4 else None

        return wait_until(refused_or_scanned_whole, what=f"a scan of the whole queue by {sql}")

    wait_until(lambda: "status" in pull("size > 1"), what="the broker's version")
    return {sql: pull(sql) for sql in ("size > 1", "size > 100", "size >")}


@compares(pulls_by_sql)
def test_a_pull_by_sql_gets_what_matches_and_ours_refuses_what_cannot_be_read(seen: Seen) -> None:
    observed = seen(but={"size >": {"kind": "MQBrokerException", "code": 23}})
    assert observed["size > 1"]["messages"] == ["m2", "m3"]
    assert observed["size > 100"]["status"] == "NO_MATCHED_MSG"
    assert observed["size >"]["messages"] == ["m0", "m1", "m2", "m3"], "Apache lets everything through"


def a_pull_that_waits(run: ScenarioRun) -> Any:
    java, topic = run.java, run.topic()
    producer, puller = run.producer(), run.client("puller")
    java.pull_consumer(puller, run.group())
    java.send(producer, topic, body="old-")
    wait_stored(run.broker, topic, 1)
    run.pull(puller, topic, 0)  # so that the connection is there

    def wait_from(queue_offset: int) -> int:
        asked = [message_queue(topic), "red", queue_offset, 32]
        return java.post("call", name=puller, method="pullBlockIfNotFound", arguments=asked)

    waiting = wait_from(1)
    time.sleep(HELD_AFTER_S)
    java.send(producer, topic, body="green-", tag="green")
    java.send(producer, topic, body="red-", tag="red")
    observed = java.answer(waiting)
    while observed["status"] == "NO_MATCHED_MSG":  # Apache's broker wakes all that are held every 5 s
        observed = java.answer(wait_from(observed["next_offset"]))
    return answer(run, observed)


@compares(a_pull_that_waits)
def test_a_pull_that_found_nothing_waits_for_what_its_filter_lets_through(seen: Seen) -> None:
    observed = seen()
    assert (observed["status"], observed["messages"]) == ("FOUND", ["red-0"])


def progress_by_hand(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    producer, puller = run.producer(), run.client("puller")
    java.send(producer, topic, count=5)
    wait_stored(run.broker, topic, 5)
    java.pull_consumer(puller, group, registerTopics=[topic])
    at = message_queue(topic)

    def stored() -> Any:
        return java.invoke(puller, "fetchConsumeOffset", at, True)

    observed: dict[str, Any] = {"before": stored()}
    java.invoke(puller, "updateConsumeOffset", at, 3)
    observed["in memory"] = java.invoke(puller, "fetchConsumeOffset", at, False)
    java.invoke(puller, "persist", at)
    run.stop(puller)
    wait_until(lambda: run.committed(group, topic) == {0: 3}, what="progress")  # nobody answers a commit
    observed["committed"] = run.committed(group, topic)
    puller = run.client("second")
    java.pull_consumer(puller, group, registerTopics=[topic])
    observed["after"] = stored()
    observed["queues"] = [each["queue_id"] for each in java.invoke(puller, "fetchSubscribeMessageQueues", topic)]
    observed["edges"] = [java.invoke(puller, edge, at) for edge in ("minOffset", "maxOffset")]
    observed["of the future"] = java.invoke(puller, "searchOffset", at, 2**41)
    observed["of the past"] = java.invoke(puller, "searchOffset", at, 0)
    return observed


@compares(progress_by_hand)
def test_a_pull_consumer_keeps_its_progress_at_the_broker(seen: Seen) -> None:
    observed = seen()
    assert observed["in memory"] == 3
    assert observed["committed"] == {0: 3}
    assert (observed["after"], observed["queues"], observed["edges"]) == (3, [0], [0, 5])


def lite_pull_of_a_group(run: ScenarioRun) -> Any:
    """Subscribes, polls, commits by hand; another member goes on where it stopped."""
    java, group, topic = run.java, run.group(), run.topic(queues=2)
    producer = run.producer()
    for queue in range(2):
        java.send(producer, topic, body=f"{queue}-", count=4, queue=queue, tag="red" if queue else "green")

    def poll(name: str, count: int) -> list[str]:
        got: list[str] = []
        wait_until(lambda: got.extend(bodies(java.invoke(name, "poll", 500))) or len(got) >= count, what="polled")
        return sorted(got)

    first = run.client("first")
    java.lite_pull_consumer(first, group, topic, autoCommit=False)
    observed: dict[str, Any] = {"first": poll(first, 8)}
    java.invoke(first, "commitSync")
    wait_until(lambda: sum(run.committed(group, topic).values()) == 8, what="progress")
    run.stop(first)
    java.send(producer, topic, body="new-", count=2, queue=1, tag="red")
    second = run.client("second")
    java.lite_pull_consumer(second, group, {"topic": topic, "expression": "red"}, autoCommit=True)
    observed["second"] = poll(second, 2)
    java.invoke(second, "commitSync")
    wait_until(lambda: sum(run.committed(group, topic).values()) == 10, what="progress")
    run.stop(second)
    observed["committed"] = run.committed(group, topic)
    return observed


@compares(lite_pull_of_a_group)
def test_lite_pull_members_share_a_groups_progress(seen: Seen) -> None:
    assert seen() == {
        "first": sorted(f"{queue}-{number}" for queue in range(2) for number in range(4)),
        "second": ["new-0", "new-1"],
        "committed": {0: 4, 1: 6},
    }


def lite_pull_of_queues(run: ScenarioRun) -> Any:
    """Assigned queues: seek to a number, to both ends, to a time; pause and go on; commit an offset of one's own."""
    java, group, topic = run.java, run.group(), run.topic(queues=2)
    producer, name = run.producer(), run.client("lite")
    at, other = message_queue(topic, 0), message_queue(topic, 1)
    java.send(producer, topic, body="m", count=5, queue=0)
    java.lite_pull_consumer(name, group, autoCommit=False, pullBatchSize=2)
    java.invoke(name, "assign", [at, other])

    def last_of_poll(until: str) -> list[str]:
        got: list[str] = []
        wait_until(lambda: got.extend(bodies(java.invoke(name, "poll", 300))) or until in got, what=f"polled {until}")
        return got

    observed: dict[str, Any] = {"from the start": last_of_poll("m4")}
    java.invoke(name, "seek", at, 3)
    observed["from 3"] = last_of_poll("m4")
    java.invoke(name, "seekToBegin", at)
    observed["from the beginning"] = last_of_poll("m4")
    java.invoke(name, "seekToEnd", at)
    java.send(producer, topic, body="new-", queue=0)
    observed["from the end"] = last_of_poll("new-0")
    observed["beyond the end"] = run.refusal(lambda: java.invoke(name, "seek", at, 99))
    time.sleep(HELD_AFTER_S)
    java.invoke(name, "pause", [at])
    java.send(producer, topic, body="caught-", queue=0)  # by the pull that was on its way
    observed["on its way"] = last_of_poll("caught-0")
    java.send(producer, topic, body="paused-", queue=0)
    java.send(producer, topic, body="other-", queue=1)
    observed["while the other is paused"] = last_of_poll("other-0")
    java.invoke(name, "resume", [at])
    observed["resumed"] = last_of_poll("paused-0")
    java.invoke(name, "commitSync", [[at, 4]], True)
    wait_until(lambda: run.committed(group, topic).get(0) == 4, what="progress")
    observed["committed"] = run.committed(group, topic)
    observed["committed as told"] = java.invoke(name, "committed", at)
    observed["of a time"] = [java.invoke(name, "offsetForTimestamp", at, moment) for moment in (0, 2**41)]
    observed["queues"] = sorted(each["queue_id"] for each in java.invoke(name, "fetchMessageQueues", topic))
    return observed


@compares(lite_pull_of_queues)
def test_a_lite_pull_consumer_of_assigned_queues_seeks_pauses_and_commits(seen: Seen) -> None:
    observed = seen()
    assert observed["from the start"] == observed["from the beginning"] == [f"m{number}" for number in range(5)]
    assert observed["from 3"] == ["m3", "m4"]
    assert observed["from the end"] == ["new-0"]
    assert observed["beyond the end"]["kind"] == "MQClientException"
    assert observed["while the other is paused"] == ["other-0"]
    assert observed["resumed"] == ["paused-0"]
    assert observed["committed"][0] == observed["committed as told"] == 4


def broadcast(run: ScenarioRun) -> Any:
    """Each member gets each message, a failed one is not repeated, and the broker keeps no progress."""
    java, group, topic = run.java, run.group(), run.topic(queues=2)
    producer = run.producer()
    settings = {"set": {"messageModel": "BROADCASTING"}}
    members = [
        run.consumer(group, topic, "first", **settings, outcomes={"m1": ["later"]}),
        run.consumer(group, topic, "second", **settings),
    ]
    for member in members:
        run.wait_for_queues(member, topic, 2)
    java.send(producer, topic, body="m", count=6)
    for member in members:
        java.wait_consumed(6, member)
    (connection,) = {each["messageModel"] for each in [java.admin("connections", group=group)]}
    for member in members:
        run.stop(member)
    return {
        "first": sorted(bodies(java.consumed(members[0]))),
        "second": sorted(bodies(java.consumed(members[1]))),
        "committed": {queue: offset for queue, offset in run.committed(group, topic).items() if offset > 0},
        "model": connection,
    }


@compares(broadcast)
def test_a_broadcast_reaches_every_member_once_and_leaves_no_progress(seen: Seen) -> None:
    all_of_them = [f"m{number}" for number in range(6)]
    assert seen() == {"first": all_of_them, "second": all_of_them, "committed": {}, "model": "BROADCASTING"}
