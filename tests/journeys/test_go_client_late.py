"""What takes its time with Apache's Go client: delays, and a message that its listener refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.groups import ConsumerConnection
from remoting.wire.bodies.running_info import read_running_info
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.groups import GetConsumerRunningInfoHeader
from remoting.wire.headers.typed import write_header
from tests.journeys.conftest import Cluster
from tests.journeys.return_delays import FIRST_LEVELS, assert_deliveries_delayed
from tests.support.asking import ask
from tests.support.go_client import GoClient
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.go]

Fresh = Callable[[str], str]
# One return; the second failure makes it a dead letter.
RETURNS_MAX = 1
# The client looks for new routes, and so for its retry topic, every 30 s.
JUDGED_WITHIN_S = 200.0


@pytest.fixture
def producer(go: GoClient, fresh: Fresh) -> Iterator[str]:
    name = fresh("producer")
    go.producer(name)
    yield name
    go.stop(name)


def test_a_delayed_message_comes_at_its_time_and_not_before(go: GoClient, producer: str, fresh: Fresh) -> None:
    topic, name = fresh("go-delayed"), fresh("consumer")
    go.send(producer, topic, body="at-once-")
    go.consumer(name, fresh("group"), topic)
    go.wait_consumed(1, name)
    for level in (4, 1):
        go.send(producer, topic, body=f"level-{level}-", delay_level=level)
    late = go.wait_consumed(3, name)[1:]
    go.stop(name)
    assert [message["body"] for message in late] == ["level-1-0", "level-4-0"]
    for message, delay_ms in zip(late, (1000, 30_000), strict=True):
        assert message["at_ms"] - message["born_ms"] >= delay_ms
        assert message["topic"] == topic


def topics_by_member(broker: str, group: str) -> dict[str, set[str]]:
    """Client id → the topics of which the member says that it reads queues."""
    listed = ask(broker, Command(code=RequestCode.GET_CONSUMER_CONNECTION_LIST, ext_fields={"consumerGroup": group}))
    members = read_body(ConsumerConnection, listed.body).connection_set if listed.code == ResponseCode.SUCCESS else []
    return {member.client_id: topics_of(broker, group, member.client_id) for member in members}


def topics_of(broker: str, group: str, client_id: str) -> set[str]:
    """Of which topics the member says that it reads queues; none while it is coming or going."""
    header = GetConsumerRunningInfoHeader(consumer_group=group, client_id=client_id)
    told = ask(broker, Command(code=RequestCode.GET_CONSUMER_RUNNING_INFO, ext_fields=write_header(header)))
    found = told.code == ResponseCode.SUCCESS
    return {queue.topic for queue in read_running_info(told.body).queues} if found else set()


def test_a_refused_message_returns_after_10_s_and_ends_as_a_dead_letter(
    go: GoClient, cluster: Cluster, producer: str, fresh: Fresh
) -> None:
    topic, group, warm, name = fresh("go-refused"), fresh("group"), fresh("consumer"), fresh("consumer")
    go.send(producer, topic, body="warm-up-")
    # The first member's heartbeat makes the retry topic, a second member finds its route when it starts.
    go.consumer(warm, group, topic)
    go.wait_consumed(1, warm)
    go.stop(warm)
    go.consumer(name, group, topic, fail_until=99, max_reconsume_times=RETURNS_MAX)
    retry_topic = f"%RETRY%{group}"

    def reads_retries() -> bool:
        return any(retry_topic in topics for topics in topics_by_member(cluster.broker, group).values())

    def members() -> str:
        return f"a reader of {retry_topic} among {topics_by_member(cluster.broker, group)}"

    wait_until(reads_retries, JUDGED_WITHIN_S, members)
    (sent,) = go.send(producer, topic, tag="tag", keys="key", body="refused-")

    def deliveries(consumer: str) -> list[dict[str, Any]]:
        return [message for message in go.consumed(consumer) if message["msg_id"] == sent["msg_id"]]

    wait_until(lambda: len(deliveries(name)) > RETURNS_MAX, JUDGED_WITHIN_S, "the return")
    undertaker = fresh("consumer")
    dead_topic = f"%DLQ%{group}"
    wait_until(lambda: dead_topic in go.admin("topics"), JUDGED_WITHIN_S, "the dead letters' topic")
    go.consumer(undertaker, fresh("group"), dead_topic)
    (dead,) = wait_until(lambda: deliveries(undertaker), JUDGED_WITHIN_S, "the dead letter")
    seen = deliveries(name)
    for each in (undertaker, name):
        go.stop(each)
    assert [message["reconsume_times"] for message in seen] == [0, 1]
    assert {message["topic"] for message in seen} == {topic}
    assert {(message["tags"], message["keys"], message["body"]) for message in seen} == {("tag", "key0", "refused-0")}
    assert_deliveries_delayed(cluster.broker, seen, FIRST_LEVELS[:RETURNS_MAX])
    assert (dead["topic"], dead["body"], dead["tags"], dead["keys"]) == (dead_topic, "refused-0", "tag", "key0")
    assert dead["properties"]["RETRY_TOPIC"] == topic
