"""A broker's settings and write permission changed by actions, on our broker and Apache's; Apache's tools read back."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser

from mqadmin.clusters import models
from tests.journeys.acting import Act, acting
from tests.journeys.conftest import Cluster
from tests.support.java_client import JavaClient
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]

BROKER = "broker-a"


@pytest.fixture
def cluster(every_cluster: Cluster) -> Cluster:
    return every_cluster


@pytest.fixture
def java(java_process_5_4_0: JavaClient, cluster: Cluster) -> JavaClient:
    return java_process_5_4_0.on(cluster.namesrv)


@pytest.fixture
def act(cluster: Cluster, admin_user: AbstractUser) -> Act:
    models.Cluster.objects.create(name="there", namesrv=cluster.namesrv)
    return acting(admin_user, "there")


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
    wait_until(lambda: topic in java.admin("topics"), 20, "a route")
    stopped = act("set_broker_write_permission", broker=BROKER, writing=False)
    assert [one.state for one in stopped.items] == ["done"]
    assert routed_perm(java, topic) == 4
    assert act("set_broker_write_permission", broker=BROKER, writing=True).outcome == "done"
    assert routed_perm(java, topic) == 6
