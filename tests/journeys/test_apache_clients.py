"""Apache's own Java clients, 5.4.0 and 4.9.8, against our broker and Apache's: both must show the same."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from remoting.wire.bodies.consume_stats import read_committed_offsets
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from remoting.wire.message_id import decode_offset_message_id
from tests.journeys.retries import Retries
from tests.support.asking import ask
from tests.support.java_client import JavaClient, JavaError
from tests.support.our_broker import OurBroker
from tests.support.progress import commit_first, committed, told_by_members
from tests.support.reading import stored_count
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Fresh = Callable[[str], str]
# Whose first rebalance came before the broker knew it takes its queues 20 s later, and a busy machine adds to that.
RESUMED_WITHIN_S = 180.0
# More than is needed: the kill ends the load.
LOAD_MS = 120_000
LOAD_SENDS_MAX = 1_000_000
LOAD_THREADS = 16


@pytest.fixture(autouse=True)
def _a_retry_is_under_way(request: pytest.FixtureRequest, retries: Retries) -> None:
    """test_apache_clients_late.py judges after its 40 s what begins here."""
    if "java" in request.fixturenames:
        retries.begin(request.getfixturevalue("cluster"), request.getfixturevalue("java"))


@pytest.fixture
def producer(java: JavaClient, fresh: Fresh) -> Iterator[str]:
    name = fresh("producer")
    java.producer(name)
    yield name
    java.stop(name)


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return sorted(message["body"] for message in messages)


def numbered(word: str, count: int) -> list[str]:
    return sorted(f"{word}{number}" for number in range(count))


def test_sends_of_every_kind_arrive_once_each(java: JavaClient, producer: str, fresh: Fresh) -> None:
    topic, name = fresh("kinds"), fresh("consumer")
    sent = {
        mode: java.send(producer, topic, mode=mode, count=8, body=f"{mode}-", tag=mode, keys=f"{mode}-key-")
        for mode in ("sync", "async", "oneway", "batch")
    }
    java.consumer(name, fresh("group"), topic)
    got = java.wait_consumed(32, name)
    java.stop(name)
    assert bodies(got) == sorted(f"{mode}-{number}" for mode in sent for number in range(8))
    for message in got:
        mode, number = message["body"].split("-")
        assert (message["tags"], message["keys"]) == (mode, f"{mode}-key-{number}")
        assert (message["topic"], message["reconsume_times"]) == (topic, 0)
    assert {result["status"] for mode in sent for result in sent[mode]} == {"SEND_OK"}
    placed = {message["msg_id"]: (message["queue_id"], message["queue_offset"]) for message in got}
    for result in sent["sync"] + sent["async"]:
        assert placed[result["msg_id"]] == (result["queue_id"], result["queue_offset"])
    (batch,) = sent["batch"]
    for index, msg_id in enumerate(batch["msg_id"].split(",")):
        assert placed[msg_id] == (batch["queue_id"], batch["queue_offset"] + index)
    assert_no_gaps(got)


def assert_no_gaps(messages: list[dict[str, Any]]) -> None:
    by_queue = defaultdict(list)
    for message in messages:
        by_queue[message["queue_id"]].append(message["queue_offset"])
    for queue_offsets in by_queue.values():
        assert sorted(queue_offsets) == list(range(len(queue_offsets)))


def test_the_offset_message_id_a_sender_hears_is_the_one_a_consumer_sees(
    java: JavaClient, producer: str, fresh: Fresh
) -> None:
    topic, name = fresh("ids"), fresh("consumer")
    results = java.send(producer, topic, count=4)
    java.consumer(name, fresh("group"), topic)
    got = java.wait_consumed(4, name)
    java.stop(name)
    assert {each["offset_msg_id"] for each in got} == {each["offset_msg_id"] for each in results}


def test_an_sql_expression_lets_only_matching_messages_through(java: JavaClient, producer: str, fresh: Fresh) -> None:
    topic, name = fresh("sql"), fresh("consumer")
    values = ("1", "5", "7.5", "ten", "-3", "9")
    for value in values:
        java.send(producer, topic, count=2, body=f"{value}/", tag="red", property_name="size", property_value=value)
    java.send(producer, topic, body="without/", tag="red")
    java.send(producer, topic, body="blue/", tag="blue", property_name="size", property_value="9")
    java.consumer(name, fresh("group"), topic, sql="size BETWEEN 5 AND 10 AND TAGS IN ('red', 'green')")
    java.wait_consumed(4, name)
    java.send(producer, topic, count=4, body="small/", tag="red", property_name="size", property_value="4")
    java.send(producer, topic, body="last/", tag="green", property_name="size", property_value="10")
    got = java.wait_consumed(5, name)
    java.stop(name)
    assert bodies(got) == sorted(["5/0", "5/1", "9/0", "9/1", "last/0"])


@pytest.mark.parametrize("sql", ["size >", "size > 'large'"])
def test_a_consumer_with_an_sql_expression_that_cannot_be_read_does_not_start(
    java: JavaClient, producer: str, fresh: Fresh, sql: str
) -> None:
    topic = fresh("sql-refused")
    java.send(producer, topic)  # the client asks only a broker that has the topic
    with pytest.raises(JavaError, match="CODE: 23"):
        java.consumer(fresh("consumer"), fresh("group"), topic, sql=sql)


def test_a_tag_expression_lets_only_its_tags_through(java: JavaClient, producer: str, fresh: Fresh) -> None:
    topic, name = fresh("tags"), fresh("consumer")
    for tag in ("red", "green", "blue"):
        java.send(producer, topic, count=4, tag=tag, body=f"{tag}-", queue=0 if tag == "blue" else 1)
    java.consumer(name, fresh("group"), topic, expression="red || blue")
    got = java.wait_consumed(8, name)
    java.send(producer, topic, count=4, tag="green")
    java.send(producer, topic, count=1, tag="red", body="last-")
    got = java.wait_consumed(9, name)
    java.stop(name)
    assert bodies(got) == sorted([*numbered("red-", 4), *numbered("blue-", 4), "last-0"])


def test_a_compressed_body_comes_back_whole(java: JavaClient, producer: str, fresh: Fresh) -> None:
    topic, name = fresh("compressed"), fresh("consumer")
    results = java.send(producer, topic, count=2, size=300_000, body="big-")
    first, second = (decode_offset_message_id(each["offset_msg_id"])[1] for each in results)
    assert 0 < second - first < 100_000, "it was not stored compressed"
    java.consumer(name, fresh("group"), topic)
    got = java.wait_consumed(2, name)
    java.stop(name)
    whole = [hashlib.sha1((b"big-%d" % n).ljust(300_000, b"."), usedforsecurity=False).hexdigest() for n in (0, 1)]
    assert {message["sha1"] for message in got} == set(whole)


def test_a_group_divides_its_queues_anew_when_members_join_and_leave_and_loses_nothing(
    java: JavaClient, producer: str, fresh: Fresh
) -> None:
    topic, group = fresh("shared"), fresh("group")
    first, second, third = members = [fresh("member") for _ in range(3)]
    java.send(producer, topic, count=20, body="alone-")
    java.consumer(first, group, topic)
    await_division(java, topic, {first: 4})
    java.consumer(second, group, topic)
    await_division(java, topic, {first: 2, second: 2})
    java.send(producer, topic, count=20, body="two-")
    java.consumer(third, group, topic)
    java.send(producer, topic, mode="async", count=20, body="joining-")
    await_division(java, topic, {first: 2, second: 1, third: 1})
    java.send(producer, topic, count=20, body="three-")
    java.stop(first)
    java.send(producer, topic, mode="async", count=20, body="leaving-")
    await_division(java, topic, {second: 2, third: 2})
    expected = {body for word in ("alone-", "two-", "joining-", "three-", "leaving-") for body in numbered(word, 20)}
    wait_until(lambda: {each["body"] for each in java.consumed(*members)} == expected, what="all 100 messages")
    assert {each["body"] for each in java.consumed(second)}
    assert {each["body"] for each in java.consumed(third)}
    for name in (second, third):
        java.stop(name)


def await_division(java: JavaClient, topic: str, shares: dict[str, int]) -> None:
    """Until the members hold so many queues each (in any order of members) and every queue has one holder."""

    def is_divided() -> bool:
        held = [java.queues(member, topic) for member in shares]
        return sorted(map(len, held)) == sorted(shares.values()) and set().union(*held) == {0, 1, 2, 3}

    wait_until(is_divided, what=f"{topic} divided as {shares}")


def test_a_member_whose_process_dies_is_replaced_at_once(
    java_process_5_4_0: JavaClient, cluster: Any, tmp_path: Path, fresh: Fresh
) -> None:
    java = java_process_5_4_0.on(cluster.namesrv)
    topic, group, sender, survivor, victim = map(fresh, ("killed", "group", "producer", "survivor", "victim"))
    java.producer(sender)
    java.send(sender, topic)
    java.consumer(survivor, group, topic)
    with JavaClient("5.4.0", tmp_path / "victim", cluster.namesrv) as other:
        other.consumer(victim, group, topic)
        wait_until(lambda: len(java.queues(survivor, topic)) == 2, what="half the queues")
        wait_until(lambda: len(other.queues(victim, topic)) == 2, what="the other half")
    wait_until(lambda: len(java.queues(survivor, topic)) == 4, what="all queues again")
    java.send(sender, topic, count=8, body="after-")
    wait_until(lambda: set(numbered("after-", 8)) <= {each["body"] for each in java.consumed(survivor)})
    for name in (survivor, sender):
        java.stop(name)


def test_a_restarted_consumer_goes_on_where_it_stopped(
    java: JavaClient, cluster: Any, producer: str, fresh: Fresh
) -> None:
    topic, group, before, after = fresh("resumed"), fresh("group"), fresh("consumer"), fresh("consumer")
    java.send(producer, topic, count=12, body="before-")
    java.consumer(before, group, topic)
    java.wait_consumed(12, before)
    commit_first(cluster.broker, group, topic)
    wait_until(lambda: told_by_members(cluster.broker, group, topic) == 12, what="the offsets of what was consumed")
    java.stop(before)
    wait_until(lambda: committed(cluster.broker, group, topic, 4) == 12, what="the commits of the stop")
    java.send(producer, topic, count=8, body="after-")
    java.consumer(after, group, topic)
    assert bodies(java.wait_consumed(8, after, within_s=RESUMED_WITHIN_S)) == numbered("after-", 8)
    java.stop(after)


def test_the_admin_library_sees_members_queues_and_progress(
    java: JavaClient, producer: str, fresh: Fresh, cluster: Any
) -> None:
    topic, group, name = fresh("watched"), fresh("group"), fresh("consumer")
    begin_ms = int(time.time() * 1000)
    java.send(producer, topic, count=8, body="seen-")
    client_id = java.consumer(name, group, topic, expression="*")
    java.wait_consumed(8, name)

    (connection,) = java.admin("connections", group=group)["connectionSet"]
    assert (connection["clientId"], connection["language"]) == (client_id, "JAVA")
    assert topic in str(java.running_info(group, client_id)["mqTable"])
    assert java.is_routed(topic)
    route = java.admin("route", topic=topic)
    assert route["brokerDatas"][0]["brokerAddrs"] == {"0": cluster.broker}
    broker_name = route["brokerDatas"][0]["brokerName"]
    assert cluster.broker in str(java.admin("clusters")["brokerAddrTable"])
    in_queue = [java.admin("max_offset", topic=topic, queue=queue, broker_name=broker_name) for queue in range(4)]
    assert sum(in_queue) == 8
    assert java.admin("min_offset", topic=topic, queue=0, broker_name=broker_name) == 0
    search = {"topic": topic, "queue": 0, "broker_name": broker_name}
    assert java.admin("search_offset", timestamp=begin_ms - 60_000, **search) == 0
    assert java.admin("search_offset", timestamp=begin_ms + 600_000, **search) == in_queue[0]

    # Going, a member tells its progress.
    commit_first(cluster.broker, group, topic)
    wait_until(lambda: told_by_members(cluster.broker, group, topic) == 8, what="the offsets of what was consumed")
    java.stop(name)

    def progress() -> list[tuple[int, int, int]]:
        rows = [row for row in java.admin("consume_stats", group=group) if row["topic"] == topic]
        return sorted((row["queue_id"], row["committed_offset"], row["max_offset"]) for row in rows)

    all_of_it = [(queue, count, count) for queue, count in enumerate(in_queue)]
    wait_until(lambda: progress() == all_of_it, what="the commits of the stop")


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_our_broker_started_again_still_knows_messages_and_progress(
    java_process_5_4_0: JavaClient, tmp_path: Path, fresh: Fresh, end: str
) -> None:
    topic, group, sender, before, after = map(fresh, ("restart", "group", "producer", "consumer", "consumer"))
    with OurBroker(tmp_path / "store", patient=True) as broker:
        java = java_process_5_4_0.on(broker.namesrv)
        java.producer(sender)
        java.send(sender, topic, count=12, body="before-")
        java.consumer(before, group, topic)
        java.wait_consumed(12, before)
        wait_until(lambda: told_by_members(broker.broker, group, topic) == 12, what="the offsets of what was consumed")
        java.stop(before)
        wait_until(lambda: committed(broker.broker, group, topic, 4) == 12, what="the commits of the stop")
        java.send(sender, topic, count=8, body="left-")
        if end == "stop":
            assert broker.stop() == 0
        else:
            # What a group tells is written down every few seconds; until then a kill takes it back.
            wait_until(lambda: saved_progress(broker.store, topic, group) == 12, what="saved progress")
            broker.kill()
        broker.start()
        java.consumer(after, group, topic)
        got = java.wait_consumed(8, after)
        java.send(sender, topic, count=4, body="new-")
        got = java.wait_consumed(12, after)
        java.stop(after)
        java.stop(sender)
    assert bodies(got) == sorted([*numbered("left-", 8), *numbered("new-", 4)])


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_what_our_broker_acknowledged_under_load_outlives_its_kill(
    java_process_5_4_0: JavaClient, tmp_path: Path, fresh: Fresh, flush: str
) -> None:
    topic, sender, name = fresh("killed"), fresh("producer"), fresh("consumer")
    with OurBroker(tmp_path / "store", flush, patient=True) as broker:
        java = java_process_5_4_0.on(broker.namesrv)
        java.producer(sender, retries=0)
        java.send(sender, topic, count=4, body="before-")
        load = {"topic": topic, "mode": "sync", "threads": LOAD_THREADS, "numbered": True, "until_error": True}
        sending = java.post("send_load", producer=sender, count=LOAD_SENDS_MAX, limit_ms=LOAD_MS, **load)
        under_load = Command(code=RequestCode.GET_MAX_OFFSET, ext_fields={"topic": topic, "queueId": "0"})
        wait_until(lambda: int(ask(broker.broker, under_load).ext_fields["offset"]) > 100, what="load")
        broker.kill()
        broker.start()
        result = java.answer(sending)
        java.stop(sender)
        assert result["failed"], "the kill came too late to matter"
        acknowledged = {f"n-{number}" for number in result["acknowledged"]}
        attempted = {f"n-{number}" for number in range(result["sent"] + result["failed"] + LOAD_THREADS)}
        java.consumer(name, fresh("group"), topic)
        wait_until(
            lambda: acknowledged <= {each["body"] for each in java.consumed(name)}, what="all that was acknowledged"
        )
        stored = stored_count(broker.broker, topic, 4)
        wait_until(lambda: len(places(java.consumed(name))) == stored, what="all that is stored")
        java.stop(name)
    got = {each["body"] for each in java.consumed(name)}
    assert got - attempted == set(numbered("before-", 4)), "none invented"
    assert_no_gaps(java.consumed(name))


def places(messages: list[dict[str, Any]]) -> set[tuple[int, int]]:
    """Queue id and queue offset of each."""
    return {(message["queue_id"], message["queue_offset"]) for message in messages}


def saved_progress(store: Path, topic: str, group: str) -> int:
    """The sum of the group's committed offsets in RocketMQ's own file."""
    file = store / "config/consumerOffset.json"
    offsets = read_committed_offsets(file.read_bytes()) if file.exists() else {}
    return sum(offsets.get((topic, group), {}).values())
