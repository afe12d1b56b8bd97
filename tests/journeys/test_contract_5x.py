"""What clients of the 5.x line added, and what surrounds a message: namespaces, traces, rebalancing by the broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, bodies, compares
from tests.support.apache import ApacheRocketMQ
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[[], Any]
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
FREE = ("MIN_OFFSET", "MAX_OFFSET")
# A pull is held for up to 15 s.
HEARD_WITHIN_S = 25.0


def namespace(run: ScenarioRun) -> Any:
    """The old kind: the client itself writes namespace%topic."""
    java, group = run.java, run.shared("group")
    topic = run.shared("topic")
    wrapped = run.topic_named(f"space%{topic}")
    producer = run.producer(set={"namespace": "space"})
    name = run.consumer(group, topic, set={"namespace": "space"}, outcomes={"m0": ["ok"]})
    (sent,) = java.send(producer, topic, body="m", tag="tag")
    (message,) = java.wait_consumed(1, name)
    connection = java.admin("connections", group=f"space%{group}")
    return {
        "sent": run.normalized({key: sent[key] for key in ("status", "topic")}),
        "came": run.comparable(message, *FREE),
        "subscribed": sorted(run.normalized(each) for each in connection["subscriptionTable"]),
        "stored": java.admin("max_offset", topic=wrapped),
    }


@compares(namespace)
def test_a_namespace_is_part_of_the_names_at_the_broker_and_of_no_name_at_the_client(seen: Seen) -> None:
    observed = seen()
    assert observed["came"]["topic"] == "topic"
    assert observed["stored"] == 1
    assert observed["subscribed"] == ["%RETRY%space%group", "space%topic"]


def namespace_v2(run: ScenarioRun) -> Any:
    """The new kind rides beside the topic in each request; a remoting broker without lookups of it ignores it."""
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer(set={"namespaceV2": "space"})
    name = run.consumer(group, topic, set={"namespaceV2": "space"})
    run.wait_for_queues(name, topic)
    (sent,) = java.send(producer, topic, body="m")
    (message,) = java.wait_consumed(1, name)
    return {
        "sent": run.normalized({key: sent[key] for key in ("status", "topic")}),
        "came": run.comparable(message, *FREE),
        "stored": java.admin("max_offset", topic=topic),
    }


@compares(namespace_v2, "5.4.0")
def test_a_namespace_of_the_second_kind_changes_nothing_at_the_broker(seen: Seen) -> None:
    observed = seen()
    assert observed["came"]["topic"] == "topic"
    assert observed["stored"] == 1


def by_the_broker(run: ScenarioRun) -> Any:
    """clientRebalance off: each member asks the broker which queues are its own."""
    java, group, topic = run.java, run.group(), run.topic(queues=4)
    producer = run.producer()
    first = run.consumer(group, topic, "first", set={"clientRebalance": False})
    run.wait_for_queues(first, topic, 4)
    second = run.consumer(group, topic, "second", set={"clientRebalance": False})
    run.wait_for_queues(second, topic, 2)
    run.wait_for_queues(first, topic, 2)
    held = [java.queues(name, topic) for name in (first, second)]
    java.send(producer, topic, body="m", count=8)
    wait_until(lambda: len({each["body"] for each in java.consumed(first, second)}) == 8, what="all of them")
    run.stop(second)
    run.wait_for_queues(first, topic, 4)
    return {"divided": sorted(set().union(*held)), "shared by both": sorted(held[0] & held[1])}


@compares(by_the_broker, "5.4.0")
def test_a_group_that_leaves_the_division_to_the_broker_gets_one(seen: Seen) -> None:
    assert seen() == {"divided": [0, 1, 2, 3], "shared by both": []}


def heartbeat_v2(run: ScenarioRun) -> Any:
    """A fingerprint instead of the whole subscription, while it stays the same.

    A member that loses a heartbeat (see ScenarioRun.consumer), its first ones or the one after a change, never gets
    over it with these: its fingerprint is known, so its newer version is never told. Then another one is tried.
    """
    producer = run.producer()
    return observed_by_one(5, lambda attempt: changed_subscription(run, producer, attempt), "a member that is heard")


def observed_by_one(attempts: int, observe: Callable[[int], Any], what: str) -> Any:
    """What the first attempt observes that doesn't return None; each gets its number, for names of its own."""
    for attempt in range(attempts):
        observed = observe(attempt)
        if observed is not None:
            return observed
    raise AssertionError(f"not in {attempts} attempts: {what}")


def changed_subscription(run: ScenarioRun, producer: str, attempt: int) -> Any:
    """Returns what is seen of a member that changes its tags; None of one that gets no messages."""
    java, group, topic = run.java, run.group(f"group{attempt}"), run.topic(f"topic{attempt}")

    def subscription() -> str:
        return java.admin("connections", group=group)["subscriptionTable"][topic]["subString"]

    def passes_over_red() -> bool:
        return run.committed(group, topic) == {0: 2}

    options = {"useHeartbeatV2": True, "heartbeatBrokerInterval": 1_000}
    java.send(producer, topic, body="first-", tag="red")
    name = run.consumer(group, topic, f"consumer{attempt}", set=options, expression="red")
    if not is_heard(run, name, lambda: java.wait_consumed(1, name, within_s=HEARD_WITHIN_S)):
        return None
    observed = {"before": subscription()}
    java.invoke(name, "subscribe", topic, "blue")
    wait_until(lambda: subscription() == "blue", what="the changed subscription")
    observed["after"] = subscription()
    java.send(producer, topic, body="red-", tag="red")
    # A pull that is held as the subscription changes is answered by the new one, and what it brings is filtered by the
    # old one (DefaultMQPushConsumerImpl.pullMessage): it would lose the blue message. It ends with the red one.
    if not is_heard(run, name, lambda: wait_until(passes_over_red, HEARD_WITHIN_S)):
        return None
    java.send(producer, topic, body="blue-", tag="blue")
    if not is_heard(run, name, lambda: java.wait_consumed(2, name, within_s=HEARD_WITHIN_S)):
        return None
    observed["came"] = bodies(java.consumed(name))
    return observed


def is_heard(run: ScenarioRun, name: str, wait: Callable[[], object]) -> bool:
    """Tells whether `wait`, for what the member pulls, ends without AssertionError; stops the member otherwise."""
    try:
        wait()
    except AssertionError:
        run.stop(name)
        return False
    return True


@compares(heartbeat_v2, "5.4.0")
def test_a_changed_subscription_is_told_by_heartbeats_of_the_second_version(seen: Seen) -> None:
    assert seen() == {"before": "red", "after": "blue", "came": ["first-0", "blue-0"]}


def traced(run: ScenarioRun) -> Any:
    """Producer and consumer tell the trace topic what they did.

    Apache's client (AsyncTraceDispatcher) sends a trace once; where that fails it logs so and forgets it. It has been
    seen to lose one on Apache's broker, so there other members may try again; ours gets no second attempt.
    """
    attempts = 2 if isinstance(run.cluster, ApacheRocketMQ) else 1
    return observed_by_one(attempts, lambda attempt: traces_of_a_message(run, attempt), "traces of all three kinds")


def traces_of_a_message(run: ScenarioRun, attempt: int) -> Any:
    """Returns what is seen of the traces of one message; None if one of them doesn't come."""
    java, group, topic = run.java, run.group(f"group{attempt}"), run.topic(f"topic{attempt}")
    traces = run.topic(f"traces{attempt}")
    producer = run.producer(f"producer{attempt}", trace=True, trace_topic=traces)
    name = run.consumer(group, topic, f"consumer{attempt}", trace=True, trace_topic=traces)
    run.wait_for_queues(name, topic)
    (sent,) = java.send(producer, topic, body="m", keys="k")
    java.wait_consumed(1, name)
    puller = run.client(f"puller{attempt}")
    java.pull_consumer(puller, run.shared("pullers"))

    def found() -> Any:
        messages = run.pull(puller, traces, 0)["messages"]
        kinds = {line.split("\x01")[0] for each in messages for line in each["body"].split("\x02") if line}
        return messages if kinds >= {"Pub", "SubBefore", "SubAfter"} else None

    try:
        messages = wait_until(found, what="traces of all three kinds")
    except AssertionError:
        # The traces of a JVM go through one client, which ends with the last member that has any.
        run.stop(producer)
        run.stop(name)
        return None

    def found_by_key() -> bool:
        """Apache's broker indexes a message after it can be read."""
        answer = run.refusal(lambda: java.admin_call("queryMessage", traces, sent["msg_id"], 8, 0, 2**42))
        return isinstance(answer, list) and len(answer) == len(messages)

    lines = [line.split("\x01") for each in messages for line in each["body"].split("\x02") if line]
    return {
        "kinds": sorted(line[0] for line in lines),
        "of the message": all(sent["msg_id"] in each["keys"] for each in messages),
        "found by its key": wait_until(found_by_key, what="the key index"),
        "is there a system topic": java.is_routed(TRACE_TOPIC),
    }


@compares(traced)
def test_traces_of_sending_and_consuming_are_found_under_the_messages_id(seen: Seen) -> None:
    observed = seen()
    assert observed["kinds"] == ["Pub", "SubAfter", "SubBefore"]
    assert observed["of the message"]
    assert observed["found by its key"]


def settings_of_consumers(run: ScenarioRun) -> Any:
    """What a consumer may set and the broker has to bear with."""
    java, topic = run.java, run.topic(queues=2)
    producer = run.producer()
    java.send(producer, topic, body="old-", count=4)
    cases: dict[str, dict[str, Any]] = {
        "subscription in every pull": {"set": {"postSubscriptionWhenPull": True}, "expression": "red"},
        "queues in a circle": {"set": {"allocateMessageQueueStrategy": "AllocateMessageQueueAveragelyByCircle"}},
        "queues by hashing": {"set": {"allocateMessageQueueStrategy": "AllocateMessageQueueConsistentHash"}},
        "one at a time": {"pull_batch": 1, "set": {"pullThresholdForQueue": 1, "consumeConcurrentlyMaxSpan": 1}},
        "from a time": {"from": "CONSUME_FROM_TIMESTAMP", "set": {"consumeTimestamp": "20200101000000"}},
        "from the last": {"from": "CONSUME_FROM_LAST_OFFSET"},
        "batches": {"set": {"consumeMessageBatchMaxSize": 8}},
        "in unit mode": {"set": {"unitMode": True, "unitName": "unit"}},
    }
    names = {}
    for number, (word, options) in enumerate(cases.items()):
        names[word] = run.consumer(run.group(f"group{number}"), topic, f"member{number}", **options)
    for name in names.values():
        run.wait_for_queues(name, topic, 2)
    java.send(producer, topic, body="new-", count=4, tag="red")
    observed = {}
    for word, name in names.items():
        # Threads take messages in no order: an old one may come after all new ones. The expression lets four through.
        count = 4 if "expression" in cases[word] else 8
        wait_until(lambda name=name, count=count: len(java.consumed(name)) >= count, what=word)
        observed[word] = sorted(bodies(java.consumed(name)))
    return observed


@compares(settings_of_consumers)
def test_a_consumer_gets_its_messages_with_whatever_settings(seen: Seen) -> None:
    observed = seen()
    new, old = [f"new-{number}" for number in range(4)], [f"old-{number}" for number in range(4)]
    assert observed["subscription in every pull"] == new
    for word in ("queues in a circle", "queues by hashing", "one at a time", "from a time", "batches", "in unit mode"):
        assert observed[word] == [*new, *old], word
