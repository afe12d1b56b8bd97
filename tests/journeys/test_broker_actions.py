"""A broker's settings and write permission changed by actions, on our broker and Apache's; Apache's tools read back."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

from typing import Any

import pytest

from tests.journeys.acting import act, cluster, java  # noqa: F401 - fixtures
from tests.journeys.conftest import Cluster
from tests.support.java_client import JavaClient

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]

BROKER = "broker-a"


def setting(java: JavaClient, cluster: Cluster, name: str) -> Any:
    return java.admin_call("getBrokerConfig", cluster.broker)[name]


def test_a_setting_is_changed_and_taken_back(java, cluster, act) -> None:
    before = setting(java, cluster, "fileReservedTime")
    wanted = str(int(before) + 1)
    result = act("change_broker_config", broker=BROKER, settings=f"fileReservedTime={wanted}")
    assert [(one.item, one.state) for one in result.items] == [("fileReservedTime", "done")]
    assert setting(java, cluster, "fileReservedTime") == wanted
    assert result.undo is not None
    act(result.undo.action, **result.undo.arguments)
    assert setting(java, cluster, "fileReservedTime") == before


def routed_perm(java: JavaClient, topic: str) -> int:
    (queues,) = java.admin_call("examineTopicRouteInfo", topic)["queueDatas"]
    perm: int = queues["perm"]
    return perm


def test_producers_lose_the_broker_and_find_it_again(java, cluster, act, fresh) -> None:
    topic = fresh("written")
    act("create_topic", topic=topic, read_queues=1, write_queues=1)
    java.wait_routed(topic)
    stopped = act("set_broker_write_permission", broker=BROKER, writing=False)
    assert [one.state for one in stopped.items] == ["done"]
    assert routed_perm(java, topic) == 4
    assert act("set_broker_write_permission", broker=BROKER, writing=True).outcome == "done"
    assert routed_perm(java, topic) == 6
