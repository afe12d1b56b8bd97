"""Transactions of Apache's Java clients: commit, rollback, check-back, and what is given up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import Scene, bodies, plays
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[[], Any]
# The first check comes after `transactionTimeOut` (6 s) at the next round of the checks.
CHECKED_WITHIN_S = 45.0
GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
# Broker's own stamps of a stored message; not part of the contract of transactions.
FREE = ("MIN_OFFSET", "MAX_OFFSET")


def settled_at_once(scene: Scene) -> Any:
    java, group, topic = scene.java, scene.group(), scene.topic()
    sender = scene.producer(transactional=True)
    watcher = scene.consumer(group, topic)
    scene.holds(watcher, topic)

    def send(local: str) -> Any:
        options = {"tag": "tag", "keys": "k", "properties": {"colour": "red"}, "delay_level": 3}
        (sent,) = java.send(sender, topic, mode="transaction", body=f"{local}-", local=local, **options)
        return {key: sent[key] for key in ("status", "local_state", "queue_id")}

    told = {"sent": {local: send(local) for local in ("rollback", "commit")}}
    (message,) = java.wait_consumed(1, watcher)
    java.send(sender, topic, body="plain-")
    java.wait_consumed(2, watcher)
    (first, _) = java.events("executed", sender)
    return {
        **told,
        "came": [scene.told(message, *FREE)],
        "all": bodies(java.consumed(watcher)),
        "delivered once": message["transaction_id"] == java.events("executed", sender)[1]["transaction_id"],
        "before the listener": scene.told(first),
    }


@plays(settled_at_once)
def test_a_committed_message_comes_and_a_rolled_back_one_does_not(seen: Seen) -> None:
    told = seen()
    assert told["sent"]["commit"]["local_state"] == "COMMIT_MESSAGE"
    assert told["sent"]["rollback"]["local_state"] == "ROLLBACK_MESSAGE"
    assert told["all"] == ["commit-0", "plain-0"]
    (came,) = told["came"]
    assert (came["topic"], came["tags"], came["keys"]) == ("topic", "tag", "k0")
    assert came["properties"]["colour"] == "red"


def checked(scene: Scene) -> Any:
    java, group, topic = scene.java, scene.group(), scene.topic()
    sender = scene.producer(transactional=True)
    watcher = scene.consumer(group, topic)
    scene.holds(watcher, topic)
    script = {
        "commit": ("unknown", ["commit"]),
        "rollback": ("unknown", ["rollback"]),
        "failed": ("throw", ["commit"]),
        "nothing": ("null", ["commit"]),
        "patience": ("unknown", ["unknown", "commit"]),
        "broken": ("unknown", ["throw", "commit"]),
    }
    for word, (local, checks) in script.items():
        java.send(sender, topic, mode="transaction", body=f"{word}-", local=local, checks=checks)
    java.wait_consumed(5, watcher, within_s=CHECKED_WITHIN_S)
    checks = java.wait_events("checked", 8, sender, within_s=10)
    return {
        "came": sorted(bodies(java.consumed(watcher))),
        "checks": {f"{word}-0": sum(each["body"] == f"{word}-0" for each in checks) for word in script},
        "checked": scene.told(next(each for each in checks if each["body"] == "commit-0"), *FREE),
        "delivered": scene.told(next(each for each in java.consumed(watcher) if each["body"] == "patience-0"), *FREE),
        "born as sent": all(each["born_ms"] <= each["stored_ms"] for each in checks),
    }


@plays(checked)
def test_an_open_transaction_is_asked_for_until_its_producer_knows(seen: Seen) -> None:
    told = seen()
    assert told["came"] == ["broken-0", "commit-0", "failed-0", "nothing-0", "patience-0"]
    assert told["checks"]["patience-0"] == told["checks"]["broken-0"] == 2
    assert told["checks"]["rollback-0"] == 1
    assert told["checked"]["topic"] == "topic"
    assert told["checked"]["properties"]["TRANSACTION_CHECK_TIMES"] == "1"


def checked_with_another(scene: Scene) -> Any:
    """The producer that sent is gone; another of its group is asked."""
    java, group, topic = scene.java, scene.group(), scene.topic()
    senders = scene.shared("senders")
    gone, stays = scene.client("gone"), scene.client("stays")
    java.producer(gone, senders, transactional=True)
    java.producer(stays, senders, transactional=True)
    java.send(stays, topic, body="hello-")  # a producer says to a broker that it is there when it knows a topic of it
    watcher = scene.consumer(group, topic)
    java.send(gone, topic, mode="transaction", body="m", local="unknown", checks=["commit"])
    scene.stop(gone)
    java.wait_consumed(2, watcher, within_s=CHECKED_WITHIN_S + 30)
    return {"came": sorted(bodies(java.consumed(watcher))), "asked": bodies(java.events("checked", stays))}


@plays(checked_with_another)
def test_any_producer_of_the_group_can_settle_what_another_began(seen: Seen) -> None:
    assert seen() == {"came": ["hello-0", "m0"], "asked": ["m0"]}


def given_up(scene: Scene) -> Any:
    """A half message that says of itself that it was checked 15 times: it goes where operators find it."""
    java, topic = scene.java, scene.topic()
    sender, puller = scene.producer(transactional=True), scene.client("puller")
    java.pull_consumer(puller, scene.shared("pullers"))
    body = scene.shared("tired")
    checked_already = {"TRANSACTION_CHECK_TIMES": "15"}
    java.send(sender, topic, mode="transaction", body=body, local="unknown", checks=["commit"], system=checked_already)

    def found() -> Any:
        answer = scene.refusal(lambda: scene.pull(puller, GIVEN_UP, 0))
        return [each for each in answer.get("messages", []) if each["body"] == f"{body}0"]

    (tired,) = wait_until(found, CHECKED_WITHIN_S, "the message that was given up")
    return {"tired": scene.told(tired, *FREE), "asked": len(java.events("checked", sender))}


@plays(given_up)
def test_a_transaction_that_nobody_settles_is_given_up_after_15_checks(seen: Seen) -> None:
    told = seen()
    assert told["asked"] == 0
    assert told["tired"]["topic"] == GIVEN_UP


def refused(scene: Scene) -> Any:
    java = scene.java
    sender, plain = scene.producer(transactional=True), scene.producer("plain")
    read_only, topic = scene.topic("read-only", perm=4), scene.topic()

    def send(to: str, by: str = sender, **options: Any) -> Any:
        result = scene.refusal(lambda: java.send(by, to, mode="transaction", local="commit", **options))
        return result if isinstance(result, dict) else [each["status"] for each in result]

    return {
        "to a topic that is read only": send(read_only),
        "with an illegal topic": send("an illegal topic"),
        "with an empty body": send(topic, no_body=True),
        "by a producer without transactions": send(topic, by=plain),
        "with a body that is too large": send(topic, size=5 * 1024 * 1024),
    }


@plays(refused)
def test_a_transaction_is_refused_as_any_send_is(seen: Seen) -> None:
    for case, result in seen().items():
        assert "kind" in result, case
