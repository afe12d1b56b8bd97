"""Topics created, changed and deleted by actions, on our broker and on Apache's; Apache's admin library reads back."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import pytest

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from tests.journeys.acting import act, cluster, java  # noqa: F401 - fixtures
from tests.journeys.conftest import Cluster
from tests.support.callers import caller
from tests.support.java_client import JavaClient
from tests.support.progress import committed, told_by_members
from tests.support.reading import wait_stored
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]

BROKER = "broker-a"


def settings(java: JavaClient, cluster: Cluster, topic: str) -> tuple[int, int, int] | None:
    """As Apache's admin library reads them from the broker, all at once: 4.9 has no request for one topic."""
    read = java.topic_configs(cluster.broker).get(topic)
    return (read["readQueueNums"], read["writeQueueNums"], read["perm"]) if read is not None else None


def test_a_topic_is_created_changed_taken_back_and_deleted(java, cluster, act, fresh) -> None:
    topic = fresh("acted")
    created = act("create_topic", topic=topic, read_queues=4, write_queues=4)
    assert [(one.item, one.state, one.before) for one in created.items] == [(BROKER, "done", {})]
    assert settings(java, cluster, topic) == (4, 4, 6)
    java.wait_routed(topic)

    changed = act("create_topic", topic=topic, read_queues=8, write_queues=2, perm=4)
    assert settings(java, cluster, topic) == (8, 2, 4)
    assert act("create_topic", topic=topic, read_queues=8, write_queues=2, perm=4).items[0].state == "unchanged"
    assert changed.undo is not None
    act(changed.undo.action, **changed.undo.arguments)
    assert settings(java, cluster, topic) == (4, 4, 6)

    assert created.undo is not None
    deleted = act(created.undo.action, **created.undo.arguments)
    assert [(one.item, one.state) for one in deleted.items] == [
        (BROKER, "done"),
        (f"namesrv {cluster.namesrv}", "done"),
    ]
    assert settings(java, cluster, topic) is None
    java.wait_not_routed(topic)


# 4.9 has no attributes.
@pytest.mark.parametrize("every_cluster", ["ours", "apache"], indirect=True)
def test_attributes_that_others_set_stay(java, cluster, act, fresh) -> None:
    topic = fresh("attributed")
    config = {"topicName": topic, "readQueueNums": 4, "writeQueueNums": 4, "perm": 6, "order": True}
    java.admin_call("createAndUpdateTopicConfig", cluster.broker, config | {"attributes": {"+message.type": "FIFO"}})
    act("create_topic", topic=topic, read_queues=6, write_queues=6)
    read = java.admin_call("examineTopicConfig", cluster.broker, topic)
    assert (read["readQueueNums"], read["order"], read["attributes"]) == (6, True, {"message.type": "FIFO"})


def test_the_preview_of_a_deletion_counts_messages_and_readers(java, cluster, act, fresh, admin_user) -> None:
    topic, group, sender, reader = fresh("read"), fresh("reading"), fresh("sender"), fresh("reader")
    act("create_topic", topic=topic, read_queues=1, write_queues=1)
    java.wait_routed(topic)
    java.producer(sender)
    java.send(sender, topic, count=3)
    java.consumer(reader, group, topic)
    java.wait_consumed(3, reader)
    wait_until(lambda: told_by_members(cluster.broker, group, topic) == 3, what="the offsets of what was consumed")
    java.stop(reader)
    wait_until(lambda: committed(cluster.broker, group, topic, 1) == 3, what="the commit of the stop")
    java.send(sender, topic, count=2)
    wait_stored(cluster.broker, topic, 5)
    seen = runner.preview(caller(admin_user), "delete_topic", "there", {"topic": topic})
    assert seen.changes[0].before == {
        "read_queues": 1,
        "write_queues": 1,
        "perm": 6,
        "messages": 5,
        "groups": [group],
    }
    assert any(f"{group} reads it and never gets the 2 messages" in words for words in seen.warnings), seen.warnings
    assert act("delete_topic", topic=topic).outcome == "done"
    java.stop(sender)


@pytest.mark.parametrize("topic", ["TBW102", "SCHEDULE_TOPIC_XXXX", BROKER, "DefaultCluster"])
def test_rocketmqs_own_topics_are_refused(java, cluster, act, topic, admin_user) -> None:
    before = settings(java, cluster, topic)
    for action in ("create_topic", "delete_topic"):
        result = runner.run(caller(admin_user), action, "there", {"topic": topic}, confirmation=topic)
        assert isinstance(result, Result)
        assert result.refusal == Refusal.RULE
    assert settings(java, cluster, topic) == before
