"""Messages and offsets looked up through Apache's Java libraries: by id, key, unique key and time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, bodies, compares
from tests.support.java_client import message_queue
from tests.support.progress import commit_first, committed, told_by_members
from tests.support.reading import wait_stored
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[[], Any]
EVER = (0, 2**42)


def by_id_and_key(run: ScenarioRun) -> Any:
    java, topic, other = run.java, run.topic(queues=2), run.topic("other")
    producer = run.producer()
    begin_ms = int(time.time() * 1000)
    (first,) = java.send(producer, topic, body="first", keys="alpha beta-", tag="red", queue=0, properties={"a": "1"})
    (second,) = java.send(producer, topic, body="second", keys="alpha gamma-", tag="blue", queue=1)
    java.send(producer, other, body="elsewhere", keys="alpha delta-")

    def by_key(key: str, of: str = topic, most: int = 32, within: tuple[int, int] = EVER) -> Any:
        found = run.refusal(lambda: java.admin_call("queryMessage", of, key, most, *within))
        return sorted(bodies(found)) if isinstance(found, list) else found

    def by_id(msg_id: str, of: str = topic) -> Any:
        found = run.refusal(lambda: java.admin_call("viewMessage", of, msg_id))
        return run.comparable(found) if "body" in found else found

    wait_until(lambda: by_key("alpha") == ["first0", "second0"], what="the index")
    wait_until(lambda: by_key("alpha", other) == ["elsewhere0"], what="the index of the other topic")
    return {
        "by key of both": by_key("alpha"),
        "by key of one": by_key("gamma-0"),
        "by key elsewhere": by_key("alpha", other),
        "by key, at most one": len(by_key("alpha", most=1)),
        "by unknown key": by_key("omega"),
        "by key, before": by_key("alpha", within=(0, begin_ms - 60_000)),
        "by key, after": by_key("alpha", within=(begin_ms + 60_000, 2**42)),
        "by key, unknown topic": by_key("alpha", "no-such-topic"),
        "by tag": by_key("red"),
        "by offset id": by_id(first["offset_msg_id"]),
        "by unique key": by_id(second["msg_id"]),
        "by unique key of another topic": by_id(second["msg_id"], other),
        "by no id": by_id("rubbish"),
        "by an offset id beyond the end": by_id(first["offset_msg_id"][:16] + f"{2**40:016X}"),
    }


@compares(by_id_and_key)
def test_a_message_is_found_by_each_of_its_names(seen: Seen) -> None:
    observed = seen()
    assert observed["by key of both"] == ["first0", "second0"]
    assert observed["by key of one"] == ["second0"]
    assert observed["by key elsewhere"] == ["elsewhere0"]
    assert observed["by key, at most one"] == 1
    assert observed["by offset id"]["body"] == "first0"
    assert observed["by offset id"]["properties"]["a"] == "1"
    assert observed["by unique key"]["body"] == "second0"
    for case in ("by unknown key", "by key, before", "by key, after"):
        assert observed[case]["code"] == 208, case


def by_time(run: ScenarioRun) -> Any:
    java, topic, empty = run.java, run.topic(), run.topic("empty")
    producer = run.producer()
    moments = []
    for number in range(3):
        (sent,) = java.send(producer, topic, body="m", first=number)
        moments.append(java.admin_call("viewMessage", topic, sent["offset_msg_id"])["stored_ms"])
        time.sleep(0.05)  # so that no two share a millisecond
    wait_stored(run.broker, topic, 3)
    at, nothing = message_queue(topic), message_queue(empty)

    def search(of: Any, moment: int) -> Any:
        return run.refusal(lambda: java.admin_call("searchOffset", of, moment))

    def earliest(of: Any) -> Any:
        return run.refusal(lambda: java.admin_call("earliestMsgStoreTime", of))

    return {
        "the time of each": [search(at, moment) for moment in moments],
        "just before each": [search(at, moment - 1) for moment in moments],
        "just after each": [search(at, moment + 1) for moment in moments],
        "long ago": search(at, 0),
        "in the future": search(at, 2**42),
        "in an empty queue": search(nothing, moments[0]),
        "in a queue that isn't": search(message_queue(topic, 9), moments[0]),
        "in a topic that isn't": search(message_queue("no-such-topic"), moments[0]),
        "earliest": earliest(at) == moments[0],
        "earliest of an empty queue": earliest(nothing),
        "edges": [java.admin_call(edge, at) for edge in ("minOffset", "maxOffset")],
        "edges of an empty queue": [java.admin_call(edge, nothing) for edge in ("minOffset", "maxOffset")],
    }


@compares(by_time)
def test_an_offset_is_found_by_its_time(seen: Seen) -> None:
    observed = seen()
    assert observed["the time of each"] == [0, 1, 2]
    assert observed["earliest"] is True
    assert observed["edges"] == [0, 3]


def both_boundaries(run: ScenarioRun) -> Any:
    """The lower is the first at or after a time, the upper the last at or before it."""
    java, topic, empty = run.java, run.topic(), run.topic("empty")
    producer = run.producer()
    moments = []
    for number in range(3):
        (sent,) = java.send(producer, topic, body="m", first=number)
        moments.append(java.admin_call("viewMessage", topic, sent["offset_msg_id"])["stored_ms"])
        time.sleep(0.05)
    wait_stored(run.broker, topic, 3)
    asked = {
        "long ago": 0,
        "just before the first": moments[0] - 1,
        "at the first": moments[0],
        "between": moments[1] - 1,
        "at the last": moments[2],
        "just after the last": moments[2] + 1,
        "in the future": 2**42,
    }
    calls = {"lower": "searchLowerBoundaryOffset", "upper": "searchUpperBoundaryOffset"}
    return {
        f"{side}, {word}": [java.admin_call(call, message_queue(of), moment) for of in (topic, empty)]
        for side, call in calls.items()
        for word, moment in asked.items()
    }


@compares(both_boundaries, "5.4.0")
def test_both_boundaries_of_a_time_are_found(seen: Seen) -> None:
    observed = seen()
    assert observed["lower, between"][0] == 1
    assert observed["upper, between"][0] == 0


def whole_topics(run: ScenarioRun) -> Any:
    """What tools list: routes, topics, their sizes and settings, what an index of a queue holds."""
    java, group, topic = run.java, run.group(), run.topic(queues=2)
    producer = run.producer()
    java.send(producer, topic, body="m", count=3, queue=1, tag="red")
    name = run.consumer(group, topic)
    java.wait_consumed(3, name)
    commit_first(run.broker, group, topic)
    wait_until(lambda: told_by_members(run.broker, group, topic) == 3, what="the offsets of what was consumed")
    run.stop(name)
    wait_until(lambda: committed(run.broker, group, topic, 2) == 3, what="the commits of the stop")
    route = java.admin("route", topic=topic)
    queues = java.admin_call("queryConsumeQueue", run.broker, topic, 1, 0, 8, group)
    return {
        "route": [{key: value for key, value in each.items() if key != "topicSysFlag"} for each in route["queueDatas"]],
        "is listed": java.is_routed(topic),
        "config": {
            key: value
            for key, value in java.admin_call("examineTopicConfig", run.broker, topic).items()
            if key in ("perm", "readQueueNums", "writeQueueNums", "order", "topicFilterType", "topicSysFlag")
        },
        "stats": sorted(
            (row["queue_id"], row["max_offset"], row["committed_offset"])
            for row in java.admin("consume_stats", group=group)
            if row["topic"] == topic
        ),
        "entries": [each["tagsCode"] == java_hash("red") for each in queues["queueData"]],
        "edges of entries": (queues["minQueueIndex"], queues["maxQueueIndex"]),
        "unknown topic": run.refusal(lambda: java.admin("route", topic="no-such-topic")),
        "unknown group": run.refusal(lambda: java.admin("consume_stats", group=run.shared("nobody"))),
    }


def java_hash(text: str) -> int:
    """String.hashCode."""
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


@compares(whole_topics)
def test_a_tool_sees_routes_settings_and_progress_of_a_topic(seen: Seen) -> None:
    observed = seen()
    assert observed["is listed"]
    assert observed["stats"] == [(0, 0, 0), (1, 3, 3)]
    assert observed["unknown topic"]["code"] == 17
