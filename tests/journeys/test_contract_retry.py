"""Retries and dead letters as Apache's Java clients see them: levels, limits, batches, and what a retried one says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, bodies, compares, gaps_ms
from tests.journeys.return_delays import assert_deliveries_delayed
from tests.support.reading import wait_stored
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[[], Any]
AT_ONCE = {"do": "later", "context": {"delayLevelWhenNextConsume": 1}}
# No two runs pull with the same offsets around them.
FREE = ("MIN_OFFSET", "MAX_OFFSET")


def send_one(run: ScenarioRun, topic: str, body: str = "m", **options: Any) -> None:
    producer = run.producer()
    properties = {"colour": "red"}
    run.java.send(producer, topic, body=body, tag="tag", keys="k", flag=7, properties=properties, **options)


def dead_letters(run: ScenarioRun, group: str, count: int = 1) -> list[dict[str, Any]]:
    """With a pull consumer of another group."""
    topic = f"%DLQ%{group}"
    wait_until(lambda: topic in run.java.admin("topics"), what="the topic of dead letters")
    puller = run.client("puller")
    run.java.pull_consumer(puller, run.shared("pullers"))

    def found() -> Any:
        messages = run.pull(puller, topic, 0)["messages"]
        return messages if len(messages) >= count else None

    return wait_until(found, what="dead letters")


def three_rounds(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    name = run.consumer(group, topic, outcomes={"m0": [AT_ONCE, AT_ONCE, AT_ONCE, "ok"]})
    run.wait_for_queues(name, topic)
    run.wait_for_queues(name, f"%RETRY%{group}")
    send_one(run, topic)
    came = java.wait_consumed(4, name)
    assert_deliveries_delayed(run.broker, came, [1, 1, 1])
    ids = {"same": len({each["msg_id"] for each in came}), "stored": len({each["offset_msg_id"] for each in came})}
    origins = {each["properties"].get("ORIGIN_MESSAGE_ID") for each in came[1:]}
    return {
        "came": [run.comparable(each, *FREE) for each in came],
        "ids": ids,
        "origin is the first delivery": origins == {came[0]["offset_msg_id"]},
    }


@compares(three_rounds)
def test_a_message_keeps_its_id_its_origin_and_its_properties_through_three_rounds(seen: Seen) -> None:
    observed = seen()
    assert observed["ids"] == {"same": 1, "stored": 4}
    assert observed["origin is the first delivery"]
    assert [each["reconsume_times"] for each in observed["came"]] == [0, 1, 2, 3]
    for each in observed["came"]:
        assert (each["topic"], each["tags"], each["keys"], each["flag"]) == ("topic", "tag", "k0", 7)
        assert each["properties"]["colour"] == "red"
    assert [each["properties"].get("RETRY_TOPIC") for each in observed["came"]] == [None, "topic", "topic", "topic"]


def straight_to_the_dead(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    never_again = {"do": "later", "context": {"delayLevelWhenNextConsume": -1}}
    name = run.consumer(group, topic, outcomes={"*": [never_again]})
    run.wait_for_queues(name, topic)
    send_one(run, topic)
    (dead,) = dead_letters(run, group)
    config = java.admin_call("examineTopicConfig", run.broker, f"%DLQ%{group}")
    return {
        "deliveries": bodies(java.consumed(name)),
        "dead": run.comparable(dead, *FREE),
        "topic": {key: config[key] for key in ("perm", "readQueueNums", "writeQueueNums")},
    }


@compares(straight_to_the_dead)
def test_a_level_below_zero_makes_a_dead_letter_at_once_which_others_can_read(seen: Seen) -> None:
    observed = seen()
    assert observed["deliveries"] == ["m0"]
    assert observed["topic"] == {"perm": 6, "readQueueNums": 1, "writeQueueNums": 1}
    dead = observed["dead"]
    assert (dead["topic"], dead["body"], dead["tags"], dead["keys"]) == ("%DLQ%group", "m0", "tag", "k0")
    assert dead["properties"]["RETRY_TOPIC"] == "topic"


def a_limit(run: ScenarioRun) -> Any:
    """The consumer's own limit counts, not the group's 16."""
    java, group, topic = run.java, run.group(), run.topic()
    name = run.consumer(group, topic, max_reconsume_times=1, outcomes={"*": [AT_ONCE]})
    run.wait_for_queues(name, topic)
    run.wait_for_queues(name, f"%RETRY%{group}")
    send_one(run, topic)
    (dead,) = dead_letters(run, group)
    came = [(each["body"], each["reconsume_times"]) for each in java.consumed(name)]
    return {"deliveries": came, "dead": run.comparable(dead, *FREE)}


@compares(a_limit)
def test_a_message_is_a_dead_letter_after_the_limit_of_its_consumer(seen: Seen) -> None:
    observed = seen()
    assert observed["deliveries"] == [("m0", 0), ("m0", 1)]
    assert observed["dead"]["reconsume_times"] == 2


def no_retry_at_all(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    name = run.consumer(group, topic, max_reconsume_times=0, outcomes={"*": ["throw"]})
    run.wait_for_queues(name, topic)
    send_one(run, topic)
    (dead,) = dead_letters(run, group)
    return {"deliveries": bodies(java.consumed(name)), "dead": run.comparable(dead, *FREE)}


@compares(no_retry_at_all)
def test_a_limit_of_zero_makes_the_first_failure_a_dead_letter(seen: Seen) -> None:
    observed = seen()
    assert observed["deliveries"] == ["m0"]
    assert observed["dead"]["reconsume_times"] == 1


def part_of_a_batch(run: ScenarioRun) -> Any:
    """ackIndex 1 of a batch of four: the last two come again."""
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    java.send(producer, topic, body="m", count=4)
    wait_stored(run.broker, topic, 4)
    partly = {"do": "ok", "context": {"ackIndex": 1, "delayLevelWhenNextConsume": 1}}
    name = run.consumer(
        group,
        topic,
        set={"consumeMessageBatchMaxSize": 4},
        outcomes={"m0": [partly], "m1": ["ok"], "m2": ["ok"], "m3": ["ok"]},
    )
    came = java.wait_consumed(6, name)
    wait_until(lambda: run.committed(group, topic) == {0: 4}, what="progress")
    run.stop(name)
    return {
        "committed": run.committed(group, topic),
        "first": [(each["body"], each["batch_size"]) for each in came[:4]],
        "again": sorted((each["body"], each["reconsume_times"]) for each in came[4:]),
    }


@compares(part_of_a_batch)
def test_of_a_batch_only_what_is_behind_the_ack_index_comes_again(seen: Seen) -> None:
    assert seen() == {
        "first": [(f"m{number}", 4) for number in range(4)],
        "again": [("m2", 1), ("m3", 1)],
        "committed": {0: 4},
    }


def a_group_without_retry_queues(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(retryQueueNums=0), run.topic()
    name = run.consumer(group, topic, outcomes={"*": [AT_ONCE]})
    run.wait_for_queues(name, topic)
    send_one(run, topic)
    java.wait_consumed(1, name)
    wait_until(lambda: run.committed(group, topic) == {0: 1}, what="progress")
    return {
        "deliveries": bodies(java.consumed(name)),
        "is there a dead letter": java.is_routed(f"%DLQ%{group}"),
    }


@compares(a_group_without_retry_queues)
def test_a_group_without_retry_queues_loses_what_it_refuses(seen: Seen) -> None:
    assert seen() == {"deliveries": ["m0"], "is there a dead letter": False}


def a_send_back_that_is_refused(run: ScenarioRun) -> Any:
    """Nothing may be written to the retry topic: the client keeps the message and tries it again itself, after 5 s."""
    java, group, topic = run.java, run.group(), run.topic()
    run.topic_named(f"%RETRY%{group}", perm=4)
    name = run.consumer(group, topic, outcomes={"m0": ["later", "ok"]})
    run.wait_for_queues(name, topic)
    send_one(run, topic)
    came = java.wait_consumed(2, name)
    wait_until(lambda: run.committed(group, topic) == {0: 1}, what="progress")
    run.stop(name)
    return {
        "came": [run.comparable(each, *FREE) for each in came],
        "the same record": len({each["offset_msg_id"] for each in came}),
        "after 5 s": all(wait_ms >= 4_900 for wait_ms in gaps_ms(came)),
        "committed": run.committed(group, topic),
    }


@compares(a_send_back_that_is_refused)
def test_a_message_that_cannot_be_sent_back_stays_with_its_consumer(seen: Seen) -> None:
    observed = seen()
    assert [each["reconsume_times"] for each in observed["came"]] == [0, 1]
    assert observed["the same record"] == 1
    assert observed["after 5 s"]
    assert observed["committed"] == {0: 1}
