"""Request and reply between Apache's Java clients: the answer, nobody's answer, an answer for nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, bodies, compares

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[[], Any]
PATIENCE_MS = 20_000
# Longer than a client takes to stop, shorter than it has patience.
WORK_MS, LONG_PATIENCE_MS = 20_000, 60_000
# Which queue of the reply topic the broker's own count picks is chance.
FREE = ("MIN_OFFSET", "MAX_OFFSET")


def replied(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    asker, answerer = run.producer("asker"), run.producer("answerer")
    name = run.consumer(group, topic, reply_with=answerer, reply="yes")
    run.wait_for_queues(name, topic)

    def ask(mode: str) -> Any:
        options = {"tag": "tag", "keys": "k", "properties": {"colour": "red"}, "timeout_ms": 60_000}
        replies = java.send(asker, topic, mode=mode, body=f"{mode}-", **options)
        observed = [run.comparable(reply, *FREE) for reply in replies]
        return [{key: value for key, value in reply.items() if key != "queue_id"} for reply in observed]

    observed = ask("request")
    ask("request_async")  # Apache's client calls back as soon as the request is sent, with or without a reply
    requests = java.wait_consumed(2, name)
    answers = java.wait_events("replied", 2, name)
    correlated = {each["properties"]["CORRELATION_ID"] for each in requests}
    return {
        "reply": observed,
        "requests": [run.comparable(each, *FREE) for each in requests],
        "answers": [each.get("status", each.get("code")) for each in answers],
        "a name for each": len(correlated) == 2,
    }


@compares(replied)
def test_a_request_gets_its_reply(seen: Seen) -> None:
    observed = seen()
    (reply,) = observed["reply"]
    assert reply["body"] == "yes"
    assert reply["properties"]["MSG_TYPE"] == "reply"
    assert [each["body"] for each in observed["requests"]] == ["request-0", "request_async-0"]
    assert observed["answers"] == ["SEND_OK", "SEND_OK"]
    assert observed["a name for each"]


def unanswered(run: ScenarioRun) -> Any:
    java, topic = run.java, run.topic()
    asker = run.producer("asker")

    def ask(mode: str, to: str = topic, **options: Any) -> Any:
        result = run.refusal(lambda: java.send(asker, to, mode=mode, timeout_ms=PATIENCE_MS, **options))
        return {"kind": result["kind"]} if isinstance(result, dict) else bodies(result)

    return {
        "nobody there": ask("request"),
        "a topic that is illegal": ask("request", "an illegal topic"),
        "no body": ask("request", no_body=True),
    }


@compares(unanswered)
def test_a_request_that_nobody_answers_ends_in_time(seen: Seen) -> None:
    observed = seen()
    assert observed["nobody there"] == {"kind": "RequestTimeoutException"}
    assert observed["a topic that is illegal"]["kind"] == "MQClientException"


def for_nobody(run: ScenarioRun) -> Any:
    """The one that asked is gone when the reply comes; and a reply to a client that never was."""
    java, group, topic = run.java, run.group(), run.topic()
    asker, answerer = run.producer("asker"), run.producer("answerer", retries=0)
    name = run.consumer(group, topic, reply_with=answerer, reply="late", sleep_ms=WORK_MS)
    run.wait_for_queues(name, topic)
    java.post("send", producer=asker, topic=topic, mode="request", body="m", timeout_ms=LONG_PATIENCE_MS)
    java.wait_consumed(1, name)
    run.stop(asker)
    (gone,) = java.wait_events("replied", 1, name)
    forged = {"MSG_TYPE": "reply", "REPLY_TO_CLIENT": "nobody@nowhere", "CORRELATION_ID": "forged", "TTL": "3000"}
    reply_topic = "DefaultCluster_REPLY_TOPIC"

    def reply(**changes: str | None) -> Any:
        system = {key: value for key, value in {**forged, **changes}.items() if value is not None}
        result = run.refusal(lambda: java.send(answerer, reply_topic, body="forged", system=system))
        return result if isinstance(result, dict) else [each["status"] for each in result]

    return {
        "asker gone": {key: gone[key] for key in ("kind", "code")},
        "asker that never was": reply(),
        "no asker": reply(REPLY_TO_CLIENT=None),
        "no name of the request": reply(CORRELATION_ID=None),
    }


@compares(for_nobody)
def test_a_reply_for_nobody_fails_at_the_one_who_replies(seen: Seen) -> None:
    observed = seen()
    assert observed["asker gone"]["code"] == 1
    assert observed["asker that never was"]["code"] == 1
