"""Groups as Apache's Java clients see them: one subscription for all, switched off, permissions, coming and going."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import Scene, bodies, plays
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[[], Any]


def subscriptions(scene: Scene, group: str) -> dict[str, str]:
    """Topic → expression, as the broker has it for the group."""
    table = scene.java.admin("connections", group=group)["subscriptionTable"]
    return scene.plain({topic: data["subString"] for topic, data in table.items()})


def overwritten(scene: Scene) -> Any:
    """Two members with other tags: the one whose queues changed last has spoken last, and its tags count for both."""
    java, group, topic = scene.java, scene.group(), scene.topic(queues=2)
    first = scene.consumer(group, topic, "first", expression="red")
    scene.holds(first, topic, 2)
    told: dict[str, Any] = {"of one": subscriptions(scene, group)}
    second = scene.consumer(group, topic, "second", expression="blue")
    scene.holds(second, topic, 1)
    scene.holds(first, topic, 1)
    both = subscriptions(scene, group)
    told["of both"] = [sorted(both), both["topic"] in ("red", "blue")]
    told["members of both"] = len(java.admin("connections", group=group)["connectionSet"])
    scene.stop(second)
    scene.holds(first, topic, 2)
    wait_until(lambda: subscriptions(scene, group)["topic"] == "red", 10, "the tags of who is left")
    told["of who is left"] = subscriptions(scene, group)
    producer = scene.producer()
    for tag in ("red", "blue"):
        java.send(producer, topic, body=f"{tag}-", tag=tag)
    java.wait_consumed(1, first)
    told["came"] = bodies(java.consumed(first))
    return told


@plays(overwritten)
def test_a_group_has_one_subscription_and_the_last_member_to_speak_decides(seen: Seen) -> None:
    told = seen()
    assert told["of one"] == told["of who is left"] == {"topic": "red", "%RETRY%group": "*"}
    assert told["of both"] == [["%RETRY%group", "topic"], True]
    assert told["members of both"] == 2
    assert told["came"] == ["red-0"]


def other_topics(scene: Scene) -> Any:
    """Two members with other topics: each topic's queues are divided among both, so half of them nobody reads."""
    java, group = scene.java, scene.group()
    one, two = scene.topic("one", queues=2), scene.topic("two", queues=2)
    first = scene.consumer(group, one, "first")
    scene.holds(first, one, 2)
    second = scene.consumer(group, two, "second")
    scene.holds(second, two, 1)
    scene.holds(first, one, 1)
    told = {"members": len(java.admin("connections", group=group)["connectionSet"])}
    scene.stop(second)
    scene.holds(first, one, 2)
    return told


@plays(other_topics)
def test_members_with_other_topics_leave_half_of_each_topic_unread(seen: Seen) -> None:
    assert seen() == {"members": 2}


def gone(scene: Scene) -> Any:
    java, group, topic = scene.java, scene.group(), scene.topic()
    name = scene.consumer(group, topic)
    scene.holds(name, topic)
    scene.stop(name)
    nobody = scene.refusal(lambda: java.admin("connections", group=group))
    producer = scene.producer("speaker")
    java.send(producer, topic)
    speakers = f"{scene.shared('speaker-group')}"
    there = wait_until(
        lambda: found if "kind" not in (found := producers(scene, speakers, topic)) else None, 45, "the producer"
    )
    scene.stop(producer)
    return {"consumers": nobody, "producer": there, "no producer": producers(scene, speakers, topic)}


def producers(scene: Scene, group: str, topic: str) -> Any:
    asked = scene.refusal(lambda: scene.java.admin_call("examineProducerConnectionInfo", group, topic))
    return asked if "kind" in asked else {"members": len(asked["connectionSet"])}


@plays(gone)
def test_a_client_that_says_goodbye_is_no_member_any_more(seen: Seen) -> None:
    told = seen()
    assert told["consumers"]["code"] == 206
    assert told["producer"] == {"members": 1}
    assert "kind" in told["no producer"]


def switched_off(scene: Scene) -> Any:
    java, group, topic = scene.java, scene.group(consumeEnable=False), scene.topic()
    producer, puller = scene.producer(), scene.client("puller")
    java.send(producer, topic, body="m")
    java.pull_consumer(puller, group)
    told: dict[str, Any] = {"pull": scene.refusal(lambda: scene.pull(puller, topic, 0))}
    scene.stop(puller)  # a member without subscriptions would take away the others'
    name = scene.consumer(group, topic)
    scene.holds(name, topic)
    java.admin_call("createAndUpdateSubscriptionGroupConfig", scene.broker, {"groupName": group, "consumeEnable": True})
    told["got after it is on again"] = bodies(java.wait_consumed(1, name))
    return told


@plays(switched_off)
def test_a_group_that_is_switched_off_gets_nothing_until_it_is_on_again(seen: Seen) -> None:
    told = seen()
    assert told["pull"]["code"] == 16
    assert told["got after it is on again"] == ["m0"]


def no_broadcast(scene: Scene) -> Any:
    java, group, topic = scene.java, scene.group(consumeBroadcastEnable=False), scene.topic()
    producer, puller = scene.producer(), scene.client("puller")
    java.send(producer, topic, body="m")
    member = scene.consumer(group, topic, set={"messageModel": "BROADCASTING"})
    scene.holds(member, topic)
    java.pull_consumer(puller, scene.shared("others"))
    refused = [each["body"] for each in java.consumed(member)]
    java.admin_call(
        "createAndUpdateSubscriptionGroupConfig", scene.broker, {"groupName": group, "consumeBroadcastEnable": True}
    )
    return {"while off": refused, "then": bodies(java.wait_consumed(1, member))}


@plays(no_broadcast)
def test_a_group_may_be_kept_from_broadcasting(seen: Seen) -> None:
    assert seen() == {"while off": [], "then": ["m0"]}


def permissions(scene: Scene) -> Any:
    java = scene.java
    producer, puller = scene.producer(retries=0), scene.client("puller")
    java.pull_consumer(puller, scene.group())
    read_only, write_only, none = scene.topic("read-only"), scene.topic("write-only"), scene.topic("none")
    for topic, perm in ((read_only, 4), (write_only, 2), (none, 0)):
        java.send(producer, topic, body="m")
        sizes = {"readQueueNums": 1, "writeQueueNums": 1}
        java.admin_call("createAndUpdateTopicConfig", scene.broker, {"topicName": topic, "perm": perm, **sizes})

    late = scene.producer("late", retries=0)  # it learns the permission before its first send

    def send(topic: str, by: str, **options: Any) -> Any:
        result = scene.refusal(lambda: java.send(by, topic, body="m", **options))
        return result if isinstance(result, dict) else [each["status"] for each in result]

    def pull(topic: str) -> Any:
        result = scene.refusal(lambda: scene.pull(puller, topic, 0))
        return bodies(result["messages"]) if "messages" in result else result

    return {
        scene.plain(topic): {
            "pull": pull(topic),
            "send": send(topic, late),
            "send by one that knew it before": send(topic, producer, queue=0),
        }
        for topic in (read_only, write_only, none)
    }


@plays(permissions)
def test_a_topics_permission_decides_who_may_send_and_who_may_read(seen: Seen) -> None:
    told = seen()
    assert told["read-only"]["send"]["kind"] == "MQClientException"
    assert told["read-only"]["send by one that knew it before"] == ["SEND_OK"]
    assert told["read-only"]["pull"] == ["m0"]
    assert told["write-only"]["send"] == ["SEND_OK"]
    assert told["write-only"]["pull"]["code"] == 16
    assert told["none"]["pull"]["code"] == 16


def more_read_than_write(scene: Scene) -> Any:
    """A topic that shrinks: new messages go to the write queues only, the rest is still read."""
    java, group = scene.java, scene.group()
    topic = scene.topic(queues=4)
    producer = scene.producer()
    for queue in range(4):
        java.send(producer, topic, body=f"{queue}-", queue=queue)
    sizes = {"readQueueNums": 4, "writeQueueNums": 2}
    java.admin_call("createAndUpdateTopicConfig", scene.broker, {"topicName": topic, "perm": 6, **sizes})
    late = scene.producer("late", retries=0)
    placed = {each["queue_id"] for each in java.send(late, topic, body="new-", count=8)}
    beyond = scene.refusal(lambda: java.send(late, topic, body="beyond-", queue=3))
    name = scene.consumer(group, topic)
    scene.holds(name, topic, 4)
    stored_beyond = 0 if isinstance(beyond, dict) else len(beyond)
    got = java.wait_consumed(12 + stored_beyond, name)
    return {
        "placed": sorted(placed),
        "beyond": beyond if isinstance(beyond, dict) else [each["status"] for each in beyond],
        "old": sorted(body for body in bodies(got) if not body.startswith(("new", "beyond"))),
    }


@plays(more_read_than_write)
def test_queues_that_are_only_read_any_more_are_still_consumed(seen: Seen) -> None:
    told = seen()
    assert told["placed"] == [0, 1]
    assert told["old"] == ["0-0", "1-0", "2-0", "3-0"]


def deleted(scene: Scene) -> Any:
    """A topic and a group are deleted by Apache's library and are gone for everybody."""
    java, group, topic = scene.java, scene.group(), scene.topic()
    producer, puller = scene.producer(retries=0), scene.client("puller")
    java.send(producer, topic, body="m")
    java.pull_consumer(puller, group)
    scene.pull(puller, topic, 0)  # it knows the route from now on
    java.admin_call("deleteTopicInBroker", [scene.broker], topic)
    told: dict[str, Any] = {"pull": scene.refusal(lambda: scene.pull(puller, topic, 0))}
    java.admin_call("deleteSubscriptionGroup", scene.broker, group)
    config = scene.refusal(lambda: java.admin_call("getAllSubscriptionGroup", scene.broker, 5000))
    told["is the group there"] = group in config["subscriptionGroupTable"]
    return told


@plays(deleted)
def test_a_deleted_topic_and_group_are_gone(seen: Seen) -> None:
    told = seen()
    assert told["pull"]["code"] == 17
    assert told["is the group there"] is False


def two_versions(scene: Scene) -> Any:
    """A member of each line of clients in one group, while a team moves from one to the other."""
    java, other = scene.java, scene.beside()
    group, topic = scene.group(), scene.topic(queues=4)
    old = scene.consumer(group, topic, "old")
    scene.holds(old, topic, 4)
    new = other.consumer(group, topic, "new")
    scene.holds(old, topic, 2)
    other.holds(new, topic, 2)
    producer, theirs = scene.producer(), other.producer("theirs")
    for queue in range(4):
        java.send(producer, topic, body=f"a{queue}-", count=2, queue=queue)
        other.java.send(theirs, topic, body=f"b{queue}-", count=2, queue=queue)

    def came() -> list[str]:
        return sorted(bodies(java.consumed(old) + other.java.consumed(new)))

    wait_until(lambda: len(came()) >= 16, 20, "all 16")
    told = {"came": came(), "shares": [len(java.consumed(old)), len(other.java.consumed(new))]}
    scene.stop(old)
    other.holds(new, topic, 4)
    return told


@plays(two_versions)
def test_clients_of_both_lines_share_a_group(seen: Seen) -> None:
    told = seen()
    assert told["came"] == sorted(f"{side}{queue}-{number}" for side in "ab" for queue in range(4) for number in (0, 1))
    assert told["shares"] == [8, 8]
