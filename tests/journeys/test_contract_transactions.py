"""Transactions of Apache's Java clients: commit, rollback, check-back, and what is given up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, bodies, compares
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[[], Any]
# The first check comes after `transactionTimeOut` (6 s) at the next round of the checks.
CHECKED_WITHIN_S = 150.0
GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
# Broker's own stamps of a stored message; not part of the contract of transactions.
FREE = ("MIN_OFFSET", "MAX_OFFSET")


def settled_at_once(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    sender = run.producer(transactional=True)
    watcher = run.consumer(group, topic)
    run.wait_for_queues(watcher, topic)

    def send(local: str) -> Any:
        options = {"tag": "tag", "keys": "k", "properties": {"colour": "red"}, "delay_level": 3}
        (sent,) = java.send(sender, topic, mode="transaction", body=f"{local}-", local=local, **options)
        return {key: sent[key] for key in ("status", "local_state", "queue_id")}

    observed = {"sent": {local: send(local) for local in ("rollback", "commit")}}
    (message,) = java.wait_consumed(1, watcher)
    java.send(sender, topic, body="plain-")
    java.wait_consumed(2, watcher)
    (first, _) = java.events("executed", sender)
    return {
        **observed,
        "came": [run.comparable(message, *FREE)],
        "all": bodies(java.consumed(watcher)),
        "delivered once": message["transaction_id"] == java.events("executed", sender)[1]["transaction_id"],
        "before the listener": run.comparable(first),
    }


@compares(settled_at_once)
def test_a_committed_message_comes_and_a_rolled_back_one_does_not(seen: Seen) -> None:
    observed = seen()
    assert observed["sent"]["commit"]["local_state"] == "COMMIT_MESSAGE"
    assert observed["sent"]["rollback"]["local_state"] == "ROLLBACK_MESSAGE"
    assert observed["all"] == ["commit-0", "plain-0"]
    (came,) = observed["came"]
    assert (came["topic"], came["tags"], came["keys"]) == ("topic", "tag", "k0")
    assert came["properties"]["colour"] == "red"


def checked(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    sender = run.producer(transactional=True)
    watcher = run.consumer(group, topic)
    run.wait_for_queues(watcher, topic)
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

    def asked(word: str) -> int:
        """At least so often: a broker that hears no answer until its next round asks again."""
        return sum(each["body"] == f"{word}-0" for each in java.events("checked", sender))

    wait_until(lambda: all(asked(word) >= len(checks) for word, (_, checks) in script.items()), what="all checks")
    checks = java.events("checked", sender)
    return {
        "came": sorted(bodies(java.consumed(watcher))),
        "checks": {f"{word}-0": min(asked(word), len(answers)) for word, (_, answers) in script.items()},
        "checked": run.comparable(next(each for each in checks if each["body"] == "commit-0"), *FREE),
        "delivered": run.comparable(
            next(each for each in java.consumed(watcher) if each["body"] == "patience-0"), *FREE
        ),
        "born as sent": all(each["born_ms"] <= each["stored_ms"] for each in checks),
    }


@compares(checked)
def test_an_open_transaction_is_asked_for_until_its_producer_knows(seen: Seen) -> None:
    observed = seen()
    assert observed["came"] == ["broken-0", "commit-0", "failed-0", "nothing-0", "patience-0"]
    assert observed["checks"]["patience-0"] == observed["checks"]["broken-0"] == 2
    assert observed["checks"]["rollback-0"] == 1
    assert observed["checked"]["topic"] == "topic"
    assert observed["checked"]["properties"]["TRANSACTION_CHECK_TIMES"] == "1"


def checked_with_another(run: ScenarioRun) -> Any:
    """The producer that sent is gone; another of its group is asked."""
    java, group, topic = run.java, run.group(), run.topic()
    senders = run.shared("senders")
    gone, stays = run.client("gone"), run.client("stays")
    java.producer(gone, senders, transactional=True)
    java.producer(stays, senders, transactional=True)
    java.send(stays, topic, body="hello-")  # a producer says to a broker that it is there when it knows a topic of it
    watcher = run.consumer(group, topic)
    # Checked after 30 s instead of 6: who sent it is gone by then.
    late = {"CHECK_IMMUNITY_TIME_IN_SECONDS": "30"}
    java.send(gone, topic, mode="transaction", body="m", local="unknown", checks=["commit"], system=late)
    run.stop(gone)
    java.wait_consumed(2, watcher, within_s=CHECKED_WITHIN_S + 30)
    return {"came": sorted(bodies(java.consumed(watcher))), "asked": sorted({*bodies(java.events("checked", stays))})}


@compares(checked_with_another)
def test_any_producer_of_the_group_can_settle_what_another_began(seen: Seen) -> None:
    assert seen() == {"came": ["hello-0", "m0"], "asked": ["m0"]}


def given_up(run: ScenarioRun) -> Any:
    """A half message that says of itself that it was checked 15 times: it goes where operators find it."""
    java, topic = run.java, run.topic()
    sender, puller = run.producer(transactional=True), run.client("puller")
    java.pull_consumer(puller, run.shared("pullers"))
    body = run.shared("tired")
    checked_already = {"TRANSACTION_CHECK_TIMES": "15"}
    java.send(sender, topic, mode="transaction", body=body, local="unknown", checks=["commit"], system=checked_already)

    def found() -> Any:
        answer = run.refusal(lambda: run.pull(puller, GIVEN_UP, 0))
        return [each for each in answer.get("messages", []) if each["body"] == f"{body}0"]

    (tired,) = wait_until(found, CHECKED_WITHIN_S, "the message that was given up")
    return {"tired": run.comparable(tired, *FREE), "asked": len(java.events("checked", sender))}


@compares(given_up)
def test_a_transaction_that_nobody_settles_is_given_up_after_15_checks(seen: Seen) -> None:
    observed = seen()
    assert observed["asked"] == 0
    assert observed["tired"]["topic"] == GIVEN_UP


def refused(run: ScenarioRun) -> Any:
    java = run.java
    sender, plain = run.producer(transactional=True), run.producer("plain")
    read_only, topic = run.topic("read-only", perm=4), run.topic()

    def send(to: str, by: str = sender, **options: Any) -> Any:
        result = run.refusal(lambda: java.send(by, to, mode="transaction", local="commit", **options))
        return result if isinstance(result, dict) else [each["status"] for each in result]

    return {
        "to a topic that is read only": send(read_only),
        "with an illegal topic": send("an illegal topic"),
        "with an empty body": send(topic, no_body=True),
        "by a producer without transactions": send(topic, by=plain),
        "with a body that is too large": send(topic, size=5 * 1024 * 1024),
    }


@compares(refused)
def test_a_transaction_is_refused_as_any_send_is(seen: Seen) -> None:
    for case, result in seen().items():
        assert "kind" in result, case
