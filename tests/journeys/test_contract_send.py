"""Sending with Apache's Java clients: every way to send, every part of a message, and every way to send it wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, bodies, compares

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[..., Any]
MIB = 1024 * 1024
FREE = ("MIN_OFFSET", "MAX_OFFSET")


def every_way(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic(queues=3)
    producer = run.producer()
    name = run.consumer(group, topic)
    run.wait_for_queues(name, topic, 3)
    part = {"tag": "tag", "keys": "k", "flag": 9, "properties": {"colour": "red", "size": "5"}}
    ways: dict[str, dict[str, Any]] = {
        "sync": {},
        "sync to a queue": {"queue": 2},
        "sync by a selector": {"selector_arg": 4},
        "async to a queue": {"mode": "async", "queue": 1},
        "async by a selector": {"mode": "async", "selector_arg": 3},
        "oneway to a queue": {"mode": "oneway", "queue": 2},
        "oneway by a selector": {"mode": "oneway", "selector_arg": 5},
        "batch to a queue": {"mode": "batch", "queue": 1, "count": 3},
    }
    sent = {way: java.send(producer, topic, body=f"{way}/", **part, **how) for way, how in ways.items()}
    came = {each["body"]: each for each in java.wait_consumed(10, name)}
    # Which order a selector sees the queues in is the client's affair.
    chosen = {way: came[f"{way}/0"]["queue_id"] == result[0]["queue_id"] for way, result in sent.items() if result}
    return {
        "sent": {way: [each["status"] for each in result] for way, result in sent.items()},
        "came": {body: without_queue(run.comparable(each, *FREE), body) for body, each in sorted(came.items())},
        "where it was said": chosen,
        "ids of the batch": sent["batch to a queue"][0]["msg_id"].split(",")
        == [came[f"batch to a queue/{number}"]["msg_id"] for number in range(3)],
        "offset ids of the batch": sent["batch to a queue"][0]["offset_msg_id"].split(",")
        == [came[f"batch to a queue/{number}"]["offset_msg_id"] for number in range(3)],
    }


def without_queue(observed: dict[str, Any], body: str) -> dict[str, Any]:
    """Where the client picked a queue itself, which one it took is chance."""
    return observed if "queue" in body else {key: value for key, value in observed.items() if key != "queue_id"}


@compares(every_way)
def test_a_message_arrives_whole_whichever_way_it_was_sent(seen: Seen) -> None:
    observed = seen()
    assert all(observed["where it was said"].values())
    assert observed["ids of the batch"]
    assert len(observed["came"]) == 10
    for message in observed["came"].values():
        assert (message["tags"], message["keys"][0], message["flag"]) == ("tag", "k", 9)
        assert message["properties"]["colour"] == "red"
    assert observed["came"]["sync to a queue/0"]["queue_id"] == 2


def odd_contents(run: ScenarioRun) -> Any:
    """Names and values that tempt an encoder, and many of them."""
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    name = run.consumer(group, topic)
    run.wait_for_queues(name, topic)
    cases: dict[str, dict[str, Any]] = {
        "letters of many scripts": {"body": "Grüße, 消息 🚀", "keys": "鍵", "tag": "色", "properties": {"名": "值 ü"}},
        "several keys": {"keys": "one two three"},
        "a tag with bars": {"tag": "a||b"},
        "blanks around": {"properties": {"blank": " in here "}},
        "many properties": {"properties": {f"p{number}": "v" * 20 for number in range(300)}},
        "a body of one byte": {"body": ""},
        "a long tag": {"tag": "t" * 200},
        "a buyer and a unit": {"system": {"BUYER_ID": "7", "UNIT_NAME": "unit"}},
        "no wait for the disk": {"set": {"waitStoreMsgOK": False}},
    }
    for how in cases.values():
        java.send(producer, topic, queue=0, **{"body": "m", **how})
    came = java.wait_consumed(len(cases), name)
    by_offset = sorted(came, key=lambda each: each["queue_offset"])
    return dict(zip(cases, (run.comparable(each, *FREE) for each in by_offset), strict=True))


@compares(odd_contents)
def test_odd_contents_come_as_they_were_sent(seen: Seen) -> None:
    observed = seen()
    assert observed["letters of many scripts"]["body"] == "Grüße, 消息 🚀0"
    assert observed["letters of many scripts"]["properties"]["名"] == "值 ü"
    assert observed["blanks around"]["properties"]["blank"] == " in here "
    assert sum(name.startswith("p") for name in observed["many properties"]["properties"]) == 300
    assert observed["several keys"]["keys"] == "one two three0"


def compressed(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    settings = [("plain", {"compress_over": 10 * MIB})]
    kinds = ("ZLIB",) if run.is_version_4 else ("ZLIB", "LZ4", "ZSTD")
    settings += [
        (kind, {"compress_over": 1000} if run.is_version_4 else {"compress_over": 1000, "set": {"compressType": kind}})
        for kind in kinds
    ]
    name = run.consumer(group, topic)
    run.wait_for_queues(name, topic)
    observed = {}
    for kind, options in settings:
        producer = run.producer(f"{kind}-sender", **options)
        java.send(producer, topic, body=f"{kind}-", count=2, size=100_000)
        got = java.wait_consumed(2 * len(observed) + 2, name)[-2:]
        observed[kind] = {
            "stored small": all(each["stored_bytes"] < 50_000 for each in got),
            "whole": sorted((each["size"], each["sha1"]) for each in got),
            "flags": sorted(each["sys_flag"] for each in got),
        }
    return observed


@compares(compressed)
def test_a_body_comes_whole_whatever_it_was_compressed_with(seen: Seen) -> None:
    observed = seen()
    assert {size for each in observed.values() for size, _ in each["whole"]} == {100_000}
    assert observed["plain"]["flags"] == [0, 0]
    assert not observed["plain"]["stored small"]
    assert all(each["stored small"] for kind, each in observed.items() if kind != "plain")


def mistakes(run: ScenarioRun) -> Any:
    java, topic, read_only = run.java, run.topic(), run.topic("read-only", perm=4)
    # A client checks much itself; what it lets through, with its own limits raised, is the broker's to refuse.
    producer = run.producer(retries=0, compress_over=100 * MIB, set={"maxMessageSize": 16 * MIB})

    def send(to: str = topic, **options: Any) -> Any:
        result = run.refusal(lambda: java.send(producer, to, **options))
        return result if isinstance(result, dict) else [each["status"] for each in result]

    return {
        "illegal topic": send("an illegal topic"),
        "empty topic": send(""),
        "topic too long": send("t" * 128),
        "topic of 127 letters": send("t" * 119 + run.number[-8:].rjust(8, "x")),
        "schedule topic": send("SCHEDULE_TOPIC_XXXX"),
        "topic of half messages": send("RMQ_SYS_TRANS_HALF_TOPIC"),
        "default topic": send("TBW102"),
        "read only": send(read_only),
        "empty body": send(no_body=True),
        "body at the limit": send(size=4 * MIB),
        "body too large": send(size=4 * MIB + 1),
        "body far too large, oneway": send(size=12 * MIB, mode="oneway"),
        "properties too long": send(properties={"long": "v" * 33_000}),
        "properties nearly too long": send(properties={"long": "v" * 32_500}),
        "separator in a property": send(properties={"a\u0001b": "c\u0002d"}),
        "level beyond the table": send(delay_level=99),
        "level that is no number": send(system={"DELAY": "soon"}),
        "batch with delays": send(mode="batch", count=2, delay_level=3),
        "batch too large": send(mode="batch", count=6, size=MIB),
        "batch to a retry topic": send(f"%RETRY%{run.shared('group')}", mode="batch", count=2),
        "queue that isn't": send(queue=77),
        "unknown retry topic": send(f"%RETRY%{run.shared('nobody')}"),
    }


@compares(mistakes)
def test_every_mistake_of_a_sender_is_refused_alike(seen: Seen) -> None:
    # Where Apache's broker throws, the sender hears "system error" and tries again; ours says what is wrong.
    wrong = {"kind": "MQBrokerException", "code": 13}
    observed = seen(but={"batch too large": wrong, "level that is no number": wrong})
    assert observed["body at the limit"] == observed["properties nearly too long"] == ["SEND_OK"]
    for case in ("illegal topic", "topic too long", "schedule topic", "read only", "empty body", "body too large"):
        assert "kind" in observed[case], case
    assert observed["queue that isn't"]["kind"] == "MQBrokerException"


def new_topics(run: ScenarioRun) -> Any:
    """A topic that nobody made: as many queues as the sender wants, not more than the template has."""
    java = run.java

    def made(word: str, **settings: Any) -> Any:
        producer, topic = run.producer(f"{word}-sender", set=settings), run.shared(word)
        java.send(producer, topic)
        config = java.admin_call("examineTopicConfig", run.broker, topic)
        return {key: config[key] for key in ("perm", "readQueueNums", "writeQueueNums")}

    return {
        "as clients want by default": made("usual"),
        "two": made("two", defaultTopicQueueNums=2),
        "a hundred": made("hundred", defaultTopicQueueNums=100),
    }


@compares(new_topics)
def test_a_topic_on_first_use_gets_the_smaller_number_of_queues(seen: Seen) -> None:
    observed = seen()
    assert observed["as clients want by default"] == {"perm": 6, "readQueueNums": 4, "writeQueueNums": 4}
    assert observed["two"]["writeQueueNums"] == 2
    assert observed["a hundred"]["writeQueueNums"] == 8


def filtered(run: ScenarioRun) -> Any:
    """Tags whose hashes are the same: the broker lets both through, the client only its own."""
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    name = run.consumer(group, topic, expression="Aa || other")
    run.wait_for_queues(name, topic)
    for tag in ("Aa", "BB", "other", "none"):
        java.send(producer, topic, body=f"{tag}-", tag=tag)
    java.send(producer, topic, body="untagged-")
    java.send(producer, topic, body="last-", tag="Aa")
    java.wait_consumed(3, name)
    return sorted(bodies(java.consumed(name)))


@compares(filtered)
def test_tags_with_the_same_hash_are_told_apart(seen: Seen) -> None:
    assert seen() == ["Aa-0", "last-0", "other-0"]
