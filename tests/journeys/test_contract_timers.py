"""Delivery at a time of one's own, delay levels, and recall, as Apache's Java clients see them.

Client 4.9.8 has no setters for times, but its brokers read the same properties.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, bodies, compares

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[[], Any]
# Apache's own timer delivers up to a second early (its precision); ours never does.
EARLY_MAX_MS = 1_000
DAY_S = 86_400
FREE = ("MIN_OFFSET", "MAX_OFFSET")


def at_its_time(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    watcher = run.consumer(group, topic)
    run.wait_for_queues(watcher, topic)
    now_ms = int(time.time() * 1000)
    wanted = {
        "in ms": ("delayTimeMs", "TIMER_DELAY_MS", 2_500, 2_500),
        "in s": ("delayTimeSec", "TIMER_DELAY_SEC", 2, 2_000),
        "at": ("deliverTimeMs", "TIMER_DELIVER_MS", now_ms + 20_000, 20_000),
        "of the past": ("deliverTimeMs", "TIMER_DELIVER_MS", now_ms - 60_000, 0),
        "of no time": ("delayTimeMs", "TIMER_DELAY_MS", 0, 0),
    }
    sent = {}
    for word, (setter, name, value, _) in wanted.items():
        how = {"system": {name: value}} if run.is_version_4 else {"set": {setter: value}}
        (sent[word],) = java.send(producer, topic, body=f"{word}/", tag="tag", keys="k", **how)
    came = {each["body"][:-2]: each for each in java.wait_consumed(len(wanted), watcher)}
    early_max_ms = 0 if run.cluster.name == "ours" else EARLY_MAX_MS
    due_ms = {word: now_ms + delay_ms for word, (*_, delay_ms) in wanted.items()}
    return {
        "sent": {word: result["status"] for word, result in sent.items()},
        "has a handle": {word: bool(result.get("recall_handle")) for word, result in sent.items()},
        "same id": all(came[word]["msg_id"] == sent[word]["msg_id"] for word in wanted),
        "came": {word: plain_times(run.comparable(message, *FREE)) for word, message in came.items()},
        "not early": {word: message["at_ms"] - due_ms[word] >= -early_max_ms for word, message in came.items()},
    }


def plain_times(observed: dict[str, Any]) -> dict[str, Any]:
    """Without the moment that the sender itself named."""
    properties = observed["properties"]
    return {
        **observed,
        "properties": {**properties, **({"TIMER_DELIVER_MS": "time"} if "TIMER_DELIVER_MS" in properties else {})},
    }


@compares(at_its_time)
def test_a_message_comes_at_the_time_its_sender_named_and_a_past_one_at_once(seen: Seen) -> None:
    observed = seen()
    assert set(observed["sent"].values()) == {"SEND_OK"}
    assert observed["same id"]
    assert all(observed["not early"].values()), observed["not early"]
    assert {(each["topic"], each["tags"], each["keys"][:1]) for each in observed["came"].values()} == {
        ("topic", "tag", "k")
    }


def refused_times(run: ScenarioRun) -> Any:
    java, topic = run.java, run.topic()
    producer = run.producer(retries=0)
    group = run.group()
    watcher = run.consumer(group, topic)
    run.wait_for_queues(watcher, topic)

    def send(**system: Any) -> Any:
        result = run.refusal(lambda: java.send(producer, topic, body=f"{len(system)}", system=system))
        return result if isinstance(result, dict) else [each["status"] for each in result]

    now_ms = int(time.time() * 1000)
    observed = {
        "beyond three days, in s": send(TIMER_DELAY_SEC=3 * DAY_S + 60),
        "beyond three days, in ms": send(TIMER_DELAY_MS=(3 * DAY_S + 60) * 1000),
        "beyond three days, at": send(TIMER_DELIVER_MS=now_ms + (4 * DAY_S) * 1000),
        "no number": send(TIMER_DELAY_MS="soon"),
        "level beyond 18": run.refusal(
            lambda: [each["status"] for each in java.send(producer, topic, delay_level=19, tag="late")]
        ),
    }
    time.sleep(0.5)
    return {**observed, "came": bodies(java.consumed(watcher))}


@compares(refused_times)
def test_a_time_beyond_three_days_is_refused(seen: Seen) -> None:
    observed = seen()
    for case in ("beyond three days, in s", "beyond three days, in ms", "beyond three days, at"):
        assert observed[case]["code"] == 13, case


def recalled(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    watcher = run.consumer(group, topic)
    run.wait_for_queues(watcher, topic)
    kept, dropped = (
        java.send(producer, topic, body=f"{word}-", set={"delayTimeMs": 20_000})[0] for word in ("kept", "dropped")
    )

    def recall(handle: str, of: str = topic) -> Any:
        return run.refusal(lambda: java.invoke(producer, "recallMessage", of, handle))

    observed = {
        "recalled": recall(dropped["recall_handle"]) == dropped["msg_id"],
        "rubbish": recall("rubbish"),
        "no handle": recall(""),
        "of another topic": recall(kept["recall_handle"], run.topic("other")),
    }
    java.wait_consumed(1, watcher)
    java.send(producer, topic, body="last-", set={"delayTimeMs": 2_000})
    java.wait_consumed(2, watcher)
    observed["too late"] = recall(kept["recall_handle"])
    return {**observed, "came": bodies(java.consumed(watcher))}


@compares(recalled, "5.4.0")
def test_a_recalled_message_never_comes(seen: Seen) -> None:
    observed = seen()
    assert observed["recalled"]
    assert observed["came"] == ["kept-0", "last-0"]
    assert "code" in observed["rubbish"]


def levels(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    watcher = run.consumer(group, topic)
    run.wait_for_queues(watcher, topic)
    for level in (0, -1, 4, 1):
        java.send(producer, topic, body=f"{level}/", delay_level=level)
    came = java.wait_consumed(4, watcher)
    return {
        "came": sorted((run.comparable(each, *FREE) for each in came), key=lambda each: each["body"]),
        "order": [body for body in bodies(came) if not body.startswith(("0", "-"))],
        "not early": all(
            each["at_ms"] - each["born_ms"] >= {"1/0": 1000, "4/0": 30_000}.get(each["body"], 0) for each in came
        ),
    }


@compares(levels)
def test_a_level_delays_and_none_or_a_negative_one_does_not(seen: Seen) -> None:
    observed = seen()
    assert observed["order"] == ["1/0", "4/0"]
    assert observed["not early"]
