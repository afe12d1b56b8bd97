"""Apache's Go client, v2.1.2, against our broker and Apache's: both must show the same.

What the client does wrong on both is not asked of it: a consumer starts with an SQL expression that the broker refuses;
a member of an ordered group never gives a lock back, so that another one waits 60 s for the queue; CreateReplyMessage
drops the body (the driver puts it in); the trace dispatcher does not make the trace topic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.apache import BROKER_NAME
from tests.support.asking import ask
from tests.support.go_client import GoClient, GoError
from tests.support.java_client import JavaClient
from tests.support.progress import committed
from tests.support.reading import message_count
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.go]

Fresh = Callable[[str], str]
SEND_OK = 0
# Pull results, in the client's own numbers.
FOUND, _NO_NEW_MESSAGE, NO_MATCH, OFFSET_ILLEGAL = range(4)
HEARTBEAT_WITHIN_S = 150.0
# The client does so every 5 s.
COMMITTED_WITHIN_S = 120.0
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
QUEUE_COUNT = 4


@pytest.fixture
def producer(go: GoClient, fresh: Fresh) -> Iterator[str]:
    name = fresh("producer")
    go.producer(name)
    yield name
    go.stop(name)


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return sorted(message["body"] for message in messages)


def numbered(word: str, count: int) -> list[str]:
    return sorted(f"{word}{number}" for number in range(count))


# sending


def test_sends_of_every_kind_arrive_once_each(go: GoClient, producer: str, fresh: Fresh) -> None:
    topic, name = fresh("go-kinds"), fresh("consumer")
    sent = {
        mode: go.send(producer, topic, mode=mode, count=6, body=f"{mode}-", tag=mode, keys=f"{mode}-key-")
        for mode in ("sync", "async", "oneway", "batch")
    }
    go.consumer(name, fresh("group"), topic)
    got = go.wait_consumed(24, name)
    go.stop(name)
    assert bodies(got) == sorted(f"{mode}-{number}" for mode in sent for number in range(6))
    for message in got:
        mode, number = message["body"].split("-")
        assert (message["tags"], message["keys"]) == (mode, f"{mode}-key-{number}")
        assert (message["topic"], message["reconsume_times"]) == (topic, 0)
    assert {result["status"] for mode in sent for result in sent[mode]} == {SEND_OK}
    placed = {
        message["msg_id"]: (message["offset_msg_id"], message["queue_id"], message["queue_offset"]) for message in got
    }
    for result in sent["sync"] + sent["async"]:
        assert placed[result["msg_id"]] == (result["offset_msg_id"], result["queue_id"], result["queue_offset"])
    (batch,) = sent["batch"]
    in_order = sorted((each for each in got if each["tags"] == "batch"), key=lambda each: each["queue_offset"])
    assert batch["offset_msg_id"].split(",") == [message["offset_msg_id"] for message in in_order]
    assert {message["queue_id"] for message in in_order} == {batch["queue_id"]}


def test_go_and_java_read_each_other_also_when_compressed(
    go: GoClient, java_process_5_4_0: JavaClient, cluster: Any, producer: str, fresh: Fresh
) -> None:
    topic, name, sender = fresh("go-java"), fresh("consumer"), fresh("producer")
    java = java_process_5_4_0.on(cluster.namesrv)
    java.producer(sender)
    java.send(sender, topic, count=2, body="java-", size=6000)
    java.send(sender, topic, count=2, mode="batch", body="java-batch-")
    go.send(producer, topic, count=2, body="go-", size=6000)
    go.send(producer, topic, count=2, mode="batch", body="go-batch-")
    go.consumer(name, fresh("group"), topic)
    java.consumer(name, fresh("group"), topic)
    seen = (go.wait_consumed(8, name), java.wait_consumed(8, name))
    for client in (go, java):
        client.stop(name)
    java.stop(sender)
    by_go, by_java = ({(each["msg_id"], each["size"]) for each in messages} for messages in seen)
    assert by_go == by_java
    assert sorted(size for _, size in by_go)[-4:] == [6000] * 4


@pytest.mark.parametrize(
    ("options", "code"),
    [({"topic": "no good name"}, 29), ({"properties": {"long": "x" * 40_000}}, 13)],
    ids=["topic", "properties"],
)
def test_a_send_that_the_broker_refuses_fails_with_its_code(
    go: GoClient, producer: str, fresh: Fresh, options: dict[str, Any], code: int
) -> None:
    with pytest.raises(GoError, match=f"CODE: {code}"):
        go.send(producer, **{"topic": fresh("go-refused"), **options})


# filters


def test_a_tag_expression_lets_only_its_tags_through(go: GoClient, producer: str, fresh: Fresh) -> None:
    topic, name = fresh("go-tags"), fresh("consumer")
    for tag in ("red", "green", "blue"):
        go.send(producer, topic, count=4, tag=tag, body=f"{tag}-")
    go.consumer(name, fresh("group"), topic, expression="red || blue")
    go.wait_consumed(8, name)
    go.send(producer, topic, count=4, tag="green")
    go.send(producer, topic, tag="red", body="last-")
    got = go.wait_consumed(9, name)
    go.stop(name)
    assert bodies(got) == sorted([*numbered("red-", 4), *numbered("blue-", 4), "last-0"])


def test_an_sql_expression_lets_only_matching_messages_through(go: GoClient, producer: str, fresh: Fresh) -> None:
    topic, name = fresh("go-sql"), fresh("consumer")
    for size in ("1", "5", "7.5", "ten", "9"):
        go.send(producer, topic, body=f"{size}/", tag="red", properties={"size": size})
    go.send(producer, topic, body="blue/", tag="blue", properties={"size": "9"})
    go.consumer(name, fresh("group"), topic, sql="size BETWEEN 5 AND 10 AND TAGS IN ('red', 'green')")
    go.wait_consumed(2, name)
    go.send(producer, topic, count=4, body="small/", tag="red", properties={"size": "4"})
    go.send(producer, topic, body="last/", tag="green", properties={"size": "10"})
    got = go.wait_consumed(3, name)
    go.stop(name)
    assert bodies(got) == ["5/0", "9/0", "last/0"]


def wait_committed(cluster: Any, group: str, topic: str, count: int) -> None:
    """Waits for the client's own commit: the one at its stop leaves out what was consumed just before."""
    wait_until(
        lambda: committed(cluster.broker, group, topic, QUEUE_COUNT) == count,
        COMMITTED_WITHIN_S,
        "the committed progress",
    )


# order


def test_an_orderly_member_takes_each_queue_in_order_and_repeats_what_failed(
    go: GoClient, cluster: Any, producer: str, fresh: Fresh
) -> None:
    topic, group, name = fresh("go-ordered"), fresh("group"), fresh("consumer")
    for queue in range(QUEUE_COUNT):
        go.send(producer, topic, count=4, queue=queue, body=f"{queue}-")
    go.consumer(name, group, topic, orderly=True, fail_until=1)
    go.wait_consumed(QUEUE_COUNT * 4 * 2, name)
    wait_committed(cluster, group, topic, QUEUE_COUNT * 4)
    go.stop(name)
    for queue in range(QUEUE_COUNT):
        go.send(producer, topic, count=2, first=4, queue=queue, body=f"{queue}-")
    # The same client id: locks are not given back by this client, and no other gets them for 60 s.
    go.consumer(name, group, topic, orderly=True, fail_until=1)
    go.wait_consumed(QUEUE_COUNT * 6 * 2, name)
    go.stop(name)
    seen = defaultdict(list)
    for message in go.consumed(name):
        seen[message["queue_id"]].append((message["body"], message["reconsume_times"]))
    for queue in range(QUEUE_COUNT):
        assert seen[queue] == [(f"{queue}-{number}", times) for number in range(6) for times in (0, 1)]


# groups


def test_two_members_divide_the_queues_and_one_takes_all_when_the_other_leaves(
    go: GoClient, producer: str, fresh: Fresh
) -> None:
    topic, group, first, second = fresh("go-shared"), fresh("group"), fresh("consumer"), fresh("consumer")
    go.send(producer, topic, count=QUEUE_COUNT)

    def round_is_divided(*counts: int) -> bool:
        """One message into each queue: how many queues each member took it from."""
        before = {name: len(go.consumed(name)) for name in (first, second)}
        word = fresh("round")
        for queue in range(QUEUE_COUNT):
            go.send(producer, topic, queue=queue, body=f"{word}-{queue}-")
        wait_until(lambda: all_here(word), what=f"all of {word}")
        held = [
            {each["queue_id"] for each in go.consumed(name)[before[name] :] if each["body"].startswith(f"{word}-")}
            for name in (first, second)
        ]
        return tuple(map(len, held)) == counts

    def all_here(word: str) -> bool:
        here = {each["body"] for each in go.consumed(first, second) if each["body"].startswith(f"{word}-")}
        return len(here) == QUEUE_COUNT

    for name in (first, second):
        go.consumer(name, group, topic)
    wait_until(lambda: round_is_divided(2, 2), what="two queues each")
    go.stop(first)
    wait_until(lambda: round_is_divided(0, 4), what="all queues with the one that stayed")
    go.stop(second)


def test_a_member_goes_on_where_the_last_one_stopped(go: GoClient, cluster: Any, producer: str, fresh: Fresh) -> None:
    topic, group, first, second = fresh("go-kept"), fresh("group"), fresh("consumer"), fresh("consumer")
    go.send(producer, topic, count=8, body="early-")
    go.consumer(first, group, topic)
    go.wait_consumed(8, first)
    wait_committed(cluster, group, topic, 8)
    go.stop(first)
    go.send(producer, topic, count=4, body="late-")
    go.consumer(second, group, topic)
    got = go.wait_consumed(4, second)
    go.stop(second)
    assert bodies(got) == numbered("late-", 4)


def test_broadcasting_members_get_everything(go: GoClient, producer: str, fresh: Fresh) -> None:
    topic, group, first, second = fresh("go-broadcast"), fresh("group"), fresh("consumer"), fresh("consumer")
    go.send(producer, topic, body="early-")
    for name in (first, second):
        go.consumer(name, group, topic, broadcasting=True)
    go.send(producer, topic, count=4, body="late-")
    got = [go.wait_consumed(5, name) for name in (first, second)]
    for name in (first, second):
        go.stop(name)
    assert [bodies(messages) for messages in got] == [sorted(["early-0", *numbered("late-", 4)])] * 2


# pulling


def test_a_pull_consumer_hears_each_kind_of_answer(go: GoClient, cluster: Any, producer: str, fresh: Fresh) -> None:
    topic, name = fresh("go-pulled"), fresh("consumer")
    (sent,) = go.send(producer, topic, queue=1, tag="red", body="one-")
    go.send(producer, topic, count=2, queue=1, tag="blue", body="more-")
    wait_until(lambda: message_count(cluster.broker, topic, 1) == 3, what="all in the queue")
    go.consumer(name, fresh("group"), topic, pull=True, expression="red")

    def pull(queue_offset: int) -> dict[str, Any]:
        return go.pull(name, topic=topic, broker=BROKER_NAME, queue=1, **{"from": queue_offset})

    answers = {queue_offset: pull(queue_offset) for queue_offset in (0, 1, 4, 999)}
    held = go.post("pull", name=name, topic=topic, broker=BROKER_NAME, queue=1, **{"from": 3})
    go.send(producer, topic, queue=1, tag="red", body="woken-")
    woken = go.answer(held)
    go.stop(name)
    assert {place: answer["status"] for place, answer in answers.items()} == {
        0: FOUND,
        1: NO_MATCH,
        4: OFFSET_ILLEGAL,
        999: OFFSET_ILLEGAL,
    }
    assert [answer["next"] for answer in answers.values()] == [3, 3, 3, 3]
    assert (answers[0]["min"], answers[0]["max"]) == (0, 3)
    assert [message["offset_msg_id"] for message in answers[0]["messages"]] == [sent["offset_msg_id"]]
    assert (woken["status"], bodies(woken["messages"])) == (FOUND, ["woken-0"])


def test_a_pull_consumers_own_loop_fetches_and_acknowledges(
    go: GoClient, cluster: Any, producer: str, fresh: Fresh
) -> None:
    topic, group, first, second = fresh("go-polled"), fresh("group"), fresh("consumer"), fresh("consumer")
    go.send(producer, topic, count=6, body="early-")

    def polled(name: str, count: int) -> list[dict[str, Any]]:
        got: list[dict[str, Any]] = []
        wait_until(lambda: got.extend(go.pull(name)) or len(got) >= count, what=f"{count} polled messages")
        return got

    go.consumer(first, group, topic, pull=True)
    assert bodies(polled(first, 6)) == numbered("early-", 6)
    wait_committed(cluster, group, topic, 6)
    go.stop(first)
    go.send(producer, topic, count=2, body="late-")
    go.consumer(second, group, topic, pull=True)
    assert bodies(polled(second, 2)) == numbered("late-", 2)
    go.stop(second)


# the rest


def test_a_request_is_answered_by_a_listener(go: GoClient, cluster: Any, producer: str, fresh: Fresh) -> None:
    topic, name, asker, replier = fresh("go-asked"), fresh("consumer"), fresh("producer"), fresh("producer")
    go.producer(replier)
    go.producer(asker)
    go.send(asker, topic, body="warm-up-")
    go.consumer(name, fresh("group"), topic, reply_by=replier)
    go.wait_consumed(1, name)
    # The reply goes to the client that the broker knows; it hears of it with the first heartbeat after the first send.
    wait_until(lambda: is_known(cluster, f"{asker}-group"), HEARTBEAT_WITHIN_S, "the asker's heartbeat")
    (reply,) = go.send(asker, topic, mode="request", body="question-", within_ms=60_000)
    for each in (name, asker, replier):
        go.stop(each)
    assert reply["body"] == "reply to question-0"
    assert reply["properties"]["MSG_TYPE"] == "reply"


def is_known(cluster: Any, producer_group: str) -> bool:
    header = {"producerGroup": producer_group}
    asked = Command(code=RequestCode.GET_PRODUCER_CONNECTION_LIST, ext_fields=header)
    return ask(cluster.broker, asked).code == ResponseCode.SUCCESS


def test_traces_of_a_send_and_of_its_consumption_are_stored(go: GoClient, producer: str, fresh: Fresh) -> None:
    topic, name, sender, reader = fresh("go-traced"), fresh("consumer"), fresh("producer"), fresh("consumer")
    go.send(producer, TRACE_TOPIC)
    go.producer(sender, trace=True)
    (sent,) = go.send(sender, topic)
    go.consumer(name, fresh("group"), topic, trace=True)
    go.wait_consumed(1, name)
    go.consumer(reader, fresh("group"), TRACE_TOPIC)

    def kinds() -> set[str]:
        told = [each for each in go.consumed(reader) if sent["msg_id"] in each.get("body", "")]
        return {record.split("\x01")[0] for each in told for record in each["body"].split("\x02") if record}

    wait_until(lambda: kinds() >= {"Pub", "SubBefore", "SubAfter"}, what="traces of the send and of the listener")
    for each in (name, sender, reader):
        go.stop(each)


def test_clients_of_a_namespace_use_topics_and_groups_of_their_own(go: GoClient, producer: str, fresh: Fresh) -> None:
    topic, sender, name = fresh("go-spaced"), fresh("producer"), fresh("consumer")
    go.producer(sender, namespace="space")
    go.send(sender, topic, count=2, body="inside-")
    go.send(producer, topic, body="outside-")
    go.consumer(name, fresh("group"), topic, namespace="space")
    got = go.wait_consumed(2, name)
    for each in (sender, name):
        go.stop(each)
    assert bodies(got) == numbered("inside-", 2)
    assert {message["topic"] for message in got} == {f"space%{topic}"}


def test_the_admin_makes_and_deletes_a_topic(go: GoClient, cluster: Any, producer: str, fresh: Fresh) -> None:
    topic = fresh("go-made")
    go.admin("create_topic", topic=topic, broker=cluster.broker, queues=3)
    wait_until(lambda: topic in go.admin("topics"), what="the new topic")
    assert sorted(go.admin("queues", topic=topic)) == [0, 1, 2]
    go.send(producer, topic, count=3)
    go.admin("delete_topic", topic=topic, broker=cluster.broker)
    wait_until(lambda: topic not in go.admin("topics"), what="the end of the topic")


def test_the_admin_lists_groups(go: GoClient, cluster: Any, producer: str, fresh: Fresh) -> None:
    topic, group, name = fresh("go-listed"), fresh("group"), fresh("consumer")
    go.send(producer, topic)
    go.consumer(name, group, topic)
    go.wait_consumed(1, name)
    go.stop(name)
    assert go.admin("groups", broker=cluster.broker)[group] == 16
