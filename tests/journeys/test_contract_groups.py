"""Groups as Apache's Java clients see them: one subscription for all, switched off, permissions, coming and going."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, bodies, compares
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[[], Any]
# For the routes that a client knows; by default it does every 30 s.
NEVER_ASKS_AGAIN = {"pollNameServerInterval": 3_600_000}


def subscriptions(run: ScenarioRun, group: str) -> dict[str, str]:
    """Topic → expression, as the broker has it for the group."""
    table = run.java.admin("connections", group=group)["subscriptionTable"]
    return run.normalized({topic: data["subString"] for topic, data in table.items()})


def overwritten(run: ScenarioRun) -> Any:
    """Two members with other tags: the one whose queues changed last has spoken last, and its tags count for both."""
    java, group, topic = run.java, run.group(), run.topic(queues=2)
    first = run.consumer(group, topic, "first", expression="red")
    run.wait_for_queues(first, topic, 2)
    observed: dict[str, Any] = {"of one": subscriptions(run, group)}
    second = run.consumer(group, topic, "second", expression="blue")
    run.wait_for_queues(second, topic, 1)
    run.wait_for_queues(first, topic, 1)
    both = subscriptions(run, group)
    observed["of both"] = [sorted(both), both["topic"] in ("red", "blue")]
    observed["members of both"] = len(java.admin("connections", group=group)["connectionSet"])
    run.stop(second)
    run.wait_for_queues(first, topic, 2)
    wait_until(lambda: subscriptions(run, group)["topic"] == "red", what="the tags of who is left")
    observed["of who is left"] = subscriptions(run, group)
    producer = run.producer()
    for tag in ("red", "blue"):
        java.send(producer, topic, body=f"{tag}-", tag=tag)
    java.wait_consumed(1, first)
    observed["came"] = bodies(java.consumed(first))
    return observed


@compares(overwritten)
def test_a_group_has_one_subscription_and_the_last_member_to_speak_decides(seen: Seen) -> None:
    observed = seen()
    assert observed["of one"] == observed["of who is left"] == {"topic": "red", "%RETRY%group": "*"}
    assert observed["of both"] == [["%RETRY%group", "topic"], True]
    assert observed["members of both"] == 2
    assert observed["came"] == ["red-0"]


def other_topics(run: ScenarioRun) -> Any:
    """Two members with other topics: each topic's queues are divided among both, so half of them nobody reads."""
    java, group = run.java, run.group()
    one, two = run.topic("one", queues=2), run.topic("two", queues=2)
    first = run.consumer(group, one, "first")
    run.wait_for_queues(first, one, 2)
    second = run.consumer(group, two, "second")
    run.wait_for_queues(second, two, 1)
    run.wait_for_queues(first, one, 1)
    observed = {"members": len(java.admin("connections", group=group)["connectionSet"])}
    run.stop(second)
    run.wait_for_queues(first, one, 2)
    return observed


@compares(other_topics)
def test_members_with_other_topics_leave_half_of_each_topic_unread(seen: Seen) -> None:
    assert seen() == {"members": 2}


def gone(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    name = run.consumer(group, topic)
    run.wait_for_queues(name, topic)
    run.stop(name)
    nobody = refused(lambda: run.refusal(lambda: java.admin("connections", group=group)))
    producer = run.producer("speaker")
    java.send(producer, topic)
    speakers = f"{run.shared('speaker-group')}"
    there = wait_until(
        lambda: found if "kind" not in (found := producers(run, speakers, topic)) else None, what="the producer"
    )
    run.stop(producer)
    return {"consumers": nobody, "producer": there, "no producer": refused(lambda: producers(run, speakers, topic))}


def refused(ask: Callable[[], Any]) -> Any:
    """The refusal, once it is one."""
    return wait_until(lambda: found if "kind" in (found := ask()) else None, what="a refusal")


def producers(run: ScenarioRun, group: str, topic: str) -> Any:
    asked = run.refusal(lambda: run.java.admin_call("examineProducerConnectionInfo", group, topic))
    return asked if "kind" in asked else {"members": len(asked["connectionSet"])}


@compares(gone)
def test_a_client_that_says_goodbye_is_no_member_any_more(seen: Seen) -> None:
    observed = seen()
    assert observed["consumers"]["code"] == 206
    assert observed["producer"] == {"members": 1}
    assert "kind" in observed["no producer"]


def switched_off(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(consumeEnable=False), run.topic()
    producer, puller = run.producer(), run.client("puller")
    java.send(producer, topic, body="m")
    java.pull_consumer(puller, group)
    observed: dict[str, Any] = {"pull": run.refusal(lambda: run.pull(puller, topic, 0))}
    run.stop(puller)  # a member without subscriptions would take away the others'
    name = run.consumer(group, topic)
    run.wait_for_queues(name, topic)
    java.admin_call("createAndUpdateSubscriptionGroupConfig", run.broker, {"groupName": group, "consumeEnable": True})
    observed["got after it is on again"] = bodies(java.wait_consumed(1, name))
    return observed


@compares(switched_off)
def test_a_group_that_is_switched_off_gets_nothing_until_it_is_on_again(seen: Seen) -> None:
    observed = seen()
    assert observed["pull"]["code"] == 16
    assert observed["got after it is on again"] == ["m0"]


def no_broadcast(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(consumeBroadcastEnable=False), run.topic()
    producer, puller = run.producer(), run.client("puller")
    java.send(producer, topic, body="m")
    member = run.consumer(group, topic, set={"messageModel": "BROADCASTING"})
    run.wait_for_queues(member, topic)
    java.pull_consumer(puller, run.shared("others"))
    refused = [each["body"] for each in java.consumed(member)]
    java.admin_call(
        "createAndUpdateSubscriptionGroupConfig", run.broker, {"groupName": group, "consumeBroadcastEnable": True}
    )
    return {"while off": refused, "then": bodies(java.wait_consumed(1, member))}


@compares(no_broadcast)
def test_a_group_may_be_kept_from_broadcasting(seen: Seen) -> None:
    assert seen() == {"while off": [], "then": ["m0"]}


def permissions(run: ScenarioRun) -> Any:
    java = run.java
    producer, puller = run.producer(retries=0, set=NEVER_ASKS_AGAIN), run.client("puller")
    java.pull_consumer(puller, run.group())
    read_only, write_only, none = run.topic("read-only"), run.topic("write-only"), run.topic("none")
    for topic, perm in ((read_only, 4), (write_only, 2), (none, 0)):
        java.send(producer, topic, body="m")
        run.change_topic(topic, perm=perm)

    late = run.producer("late", retries=0)  # it learns the permission before its first send

    def send(topic: str, by: str, **options: Any) -> Any:
        result = run.refusal(lambda: java.send(by, topic, body="m", **options))
        return result if isinstance(result, dict) else [each["status"] for each in result]

    def pull(topic: str) -> Any:
        result = run.refusal(lambda: run.pull(puller, topic, 0))
        return bodies(result["messages"]) if "messages" in result else result

    return {
        run.normalized(topic): {
            "pull": pull(topic),
            "send": send(topic, late),
            "send by one that knew it before": send(topic, producer, queue=0),
        }
        for topic in (read_only, write_only, none)
    }


@compares(permissions)
def test_a_topics_permission_decides_who_may_send_and_who_may_read(seen: Seen) -> None:
    observed = seen()
    assert observed["read-only"]["send"]["kind"] == "MQClientException"
    assert observed["read-only"]["send by one that knew it before"] == ["SEND_OK"]
    assert observed["read-only"]["pull"] == ["m0"]
    assert observed["write-only"]["send"] == ["SEND_OK"]
    assert observed["write-only"]["pull"]["code"] == 16
    assert observed["none"]["pull"]["code"] == 16


def more_read_than_write(run: ScenarioRun) -> Any:
    """A topic that shrinks: new messages go to the write queues only, the rest is still read."""
    java, group = run.java, run.group()
    topic = run.topic(queues=4)
    producer = run.producer()
    for queue in range(4):
        java.send(producer, topic, body=f"{queue}-", queue=queue)
    run.change_topic(topic, readQueueNums=4, writeQueueNums=2)
    late = run.producer("late", retries=0)
    placed = {each["queue_id"] for each in java.send(late, topic, body="new-", count=8)}
    beyond = run.refusal(lambda: java.send(late, topic, body="beyond-", queue=3))
    name = run.consumer(group, topic)
    run.wait_for_queues(name, topic, 4)
    stored_beyond = 0 if isinstance(beyond, dict) else len(beyond)
    got = java.wait_consumed(12 + stored_beyond, name)
    return {
        "placed": sorted(placed),
        "beyond": beyond if isinstance(beyond, dict) else [each["status"] for each in beyond],
        "old": sorted(body for body in bodies(got) if not body.startswith(("new", "beyond"))),
    }


@compares(more_read_than_write)
def test_queues_that_are_only_read_any_more_are_still_consumed(seen: Seen) -> None:
    observed = seen()
    assert observed["placed"] == [0, 1]
    assert observed["old"] == ["0-0", "1-0", "2-0", "3-0"]


def deleted(run: ScenarioRun) -> Any:
    """A topic and a group are deleted by Apache's library and are gone for everybody."""
    java, group, topic = run.java, run.group(), run.topic()
    producer, puller = run.producer(retries=0), run.client("puller")
    java.send(producer, topic, body="m")
    java.pull_consumer(puller, group, **NEVER_ASKS_AGAIN)
    run.pull(puller, topic, 0)  # it knows the route from now on
    java.admin_call("deleteTopicInBroker", [run.broker], topic)
    observed: dict[str, Any] = {"pull": run.refusal(lambda: run.pull(puller, topic, 0))}
    run.stop(puller)  # its next heartbeat would make the group anew
    java.admin_call("deleteSubscriptionGroup", run.broker, group)
    observed["is the group there"] = group in java.group_configs(run.broker)
    return observed


@compares(deleted)
def test_a_deleted_topic_and_group_are_gone(seen: Seen) -> None:
    observed = seen()
    assert observed["pull"]["code"] == 17
    assert observed["is the group there"] is False


def two_versions(run: ScenarioRun) -> Any:
    """A member of each line of clients in one group, while a team moves from one to the other."""
    java, other = run.java, run.other_version()
    group, topic = run.group(), run.topic(queues=4)
    old = run.consumer(group, topic, "old")
    run.wait_for_queues(old, topic, 4)
    new = other.consumer(group, topic, "new")
    run.wait_for_queues(old, topic, 2)
    other.wait_for_queues(new, topic, 2)
    producer, theirs = run.producer(), other.producer("theirs")
    for queue in range(4):
        java.send(producer, topic, body=f"a{queue}-", count=2, queue=queue)
        other.java.send(theirs, topic, body=f"b{queue}-", count=2, queue=queue)

    def came() -> list[str]:
        return sorted(bodies(java.consumed(old) + other.java.consumed(new)))

    wait_until(lambda: len(came()) >= 16, what="all 16")
    observed = {"came": came(), "shares": [len(java.consumed(old)), len(other.java.consumed(new))]}
    run.stop(old)
    other.wait_for_queues(new, topic, 4)
    return observed


@compares(two_versions)
def test_clients_of_both_lines_share_a_group(seen: Seen) -> None:
    observed = seen()
    assert observed["came"] == sorted(
        f"{side}{queue}-{number}" for side in "ab" for queue in range(4) for number in (0, 1)
    )
    assert observed["shares"] == [8, 8]
