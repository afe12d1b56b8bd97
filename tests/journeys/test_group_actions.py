"""Groups created, changed and deleted by actions, on our broker and on Apache's; Apache's admin library reads back."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

from typing import Any

import pytest

from mqadmin.action_runs import runner
from tests.journeys.acting import act, cluster, java  # noqa: F401 - fixtures
from tests.journeys.conftest import Cluster
from tests.support.callers import caller
from tests.support.java_client import JavaClient
from tests.support.progress import committed
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]

BROKER = "broker-a"


def settings(java: JavaClient, cluster: Cluster, group: str) -> dict[str, Any] | None:
    """As Apache's admin library reads them from the broker; None where it has no such group."""
    found: dict[str, Any] | None = java.group_configs(cluster.broker).get(group)
    return found


def test_a_group_is_created_changed_taken_back_and_deleted(java, cluster, act, fresh) -> None:
    group = fresh("acted")
    created = act("create_group", group=group, retry_times_max=3, broadcasting=False)
    assert [(one.item, one.state, one.before) for one in created.items] == [(BROKER, "done", {})]
    read = settings(java, cluster, group)
    assert read is not None
    assert (read["retryMaxTimes"], read["consumeBroadcastEnable"], read["consumeEnable"]) == (3, False, True)

    changed = act("create_group", group=group, retry_queues=4)
    read = settings(java, cluster, group)
    assert read is not None
    assert (read["retryQueueNums"], read["retryMaxTimes"]) == (4, 3)
    assert act("create_group", group=group, retry_queues=4).items[0].state == "unchanged"
    assert changed.undo is not None
    act(changed.undo.action, **changed.undo.arguments)
    read = settings(java, cluster, group)
    assert read is not None
    assert read["retryQueueNums"] == 1

    assert created.undo is not None
    deleted = act(created.undo.action, **created.undo.arguments)
    assert [(one.item, one.state) for one in deleted.items] == [(BROKER, "done")]
    assert settings(java, cluster, group) is None


def test_settings_that_only_other_tools_know_stay(java, cluster, act, fresh) -> None:
    group = fresh("kept")
    java.admin_call(
        "createAndUpdateSubscriptionGroupConfig",
        cluster.broker,
        {"groupName": group, "whichBrokerWhenConsumeSlowly": 7, "groupSysFlag": 0, "retryMaxTimes": 5},
    )
    act("create_group", group=group, consumption=False)
    read = settings(java, cluster, group)
    assert read is not None
    assert (read["whichBrokerWhenConsumeSlowly"], read["retryMaxTimes"], read["consumeEnable"]) == (7, 5, False)


def test_consumption_is_stopped_and_goes_on_where_it_was(java, cluster, act, fresh) -> None:
    topic, group, sender, reader = fresh("held"), fresh("holding"), fresh("sender"), fresh("reader")
    act("create_topic", topic=topic, read_queues=1, write_queues=1)
    java.wait_routed(topic)
    java.producer(sender)
    java.consumer(reader, group, topic)
    java.send(sender, topic, count=2)
    java.wait_consumed(2, reader)
    stopped = act("set_group_consumption", group=group, consumption=False)
    assert [(one.before, one.after) for one in stopped.items] == [({"consumption": True}, {"consumption": False})]
    read = settings(java, cluster, group)
    assert read is not None
    assert read["consumeEnable"] is False
    assert stopped.undo is not None
    act(stopped.undo.action, **stopped.undo.arguments)
    java.send(sender, topic, count=3)
    java.wait_consumed(5, reader)
    java.stop(reader)
    java.stop(sender)


def test_the_deletion_of_a_group_says_what_is_lost_and_takes_its_retry_topic(
    java, cluster, act, fresh, admin_user
) -> None:
    topic, group, sender, reader = fresh("lost"), fresh("losing"), fresh("sender"), fresh("reader")
    act("create_topic", topic=topic, read_queues=1, write_queues=1)
    java.wait_routed(topic)
    java.producer(sender)
    java.consumer(reader, group, topic)
    java.send(sender, topic, count=3)
    java.wait_consumed(3, reader)
    seen = runner.preview(caller(admin_user), "delete_group", "there", {"group": group})
    assert any("1 member is online" in words for words in seen.warnings), seen.warnings
    wait_until(lambda: committed(cluster.broker, group, topic, 1) == 3, what="the progress of who is stopped")
    java.stop(reader)
    java.send(sender, topic, count=2)
    wait_until(
        lambda: (
            found
            if (found := runner.preview(caller(admin_user), "delete_group", "there", {"group": group})).changes[0]
            and "2 messages are not consumed yet" in " ".join(found.warnings)
            and found.changes[0].before["members"] == []
            else None
        ),
        what="the lag of a stopped group",
    )
    assert act("delete_group", group=group).outcome == "done"
    assert settings(java, cluster, group) is None
    retry = f"%RETRY%{group}"
    java.wait_not_routed(retry)
    java.stop(sender)


def test_what_a_topic_allows_is_set_and_taken_back(java, cluster, act, fresh) -> None:
    topic = fresh("allowed")
    act("create_topic", topic=topic, read_queues=3, write_queues=3)
    result = act("set_topic_permission", topic=topic, perm=4)

    def read() -> tuple[int, int]:
        """From all at once: 4.9 has no request for one topic."""
        found = java.topic_configs(cluster.broker)[topic]
        return found["perm"], found["readQueueNums"]

    assert read() == (4, 3)
    assert result.undo is not None
    act(result.undo.action, **result.undo.arguments)
    assert read() == (6, 3)
