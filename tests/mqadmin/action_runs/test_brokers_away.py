"""A broker that is known and away is an item of every change, also when its own name server went with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Result
from mqadmin.clusters.models import Cluster
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from tests.support import console_rows
from tests.support.callers import caller
from tests.support.children import free_port
from tests.support.group_brokers import GroupBrokers

CHANGES = {
    "create_topic": {"topic": "refunds"},
    "set_topic_permission": {"topic": "orders", "perm": 4},
    "delete_topic": {"topic": "orders"},
    "create_group": {"group": "mailing"},
    "set_group_consumption": {"group": "billing", "consumption": False},
    "delete_group": {"group": "billing"},
}


@pytest.fixture
def brokers() -> Iterator[GroupBrokers]:
    with GroupBrokers("broker-a") as brokers:
        brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders")
        brokers["broker-a"].groups["billing"] = SubscriptionGroupConfig(group_name="billing")
        yield brokers


@pytest.fixture
def cluster(db: None, brokers: GroupBrokers) -> Cluster:
    """Of two brokers that have a name server each; those of broker-b are not there."""
    cluster = console_rows.make_cluster_of(f"{brokers.namesrv};127.0.0.1:{free_port()}", brokers.brokers)
    console_rows.make_broker(cluster, "broker-b", now=timezone.now(), address=f"127.0.0.1:{free_port()}")
    return cluster


def run(person: Any, action: str) -> Result:
    values = CHANGES[action]
    confirmation = str(next(iter(values.values())))
    result = runner.run(caller(person), action, "prod", values, confirmation=confirmation)
    assert isinstance(result, Result)
    return result


@pytest.mark.parametrize("action", CHANGES)
def test_a_broker_that_went_with_its_name_server_is_an_item(cluster: Cluster, ann: AbstractUser, action: str) -> None:
    result = run(ann, action)
    states = {one.item: one.state for one in result.items}
    assert (result.outcome, states["broker-a"]) == ("partial", "done")
    assert states["broker-b"] in ("failed", "skipped")
    (words,) = (one.words for one in result.items if one.item == "broker-b")
    assert "no connection to 127.0.0.1" in words


def test_its_preview_says_so_before_anything_is_sent(cluster: Cluster, ann: AbstractUser) -> None:
    seen = runner.preview(caller(ann), "set_topic_permission", "prod", CHANGES["set_topic_permission"])
    assert [(one.item, one.before) for one in seen.changes] == [("broker-a", {"perm": 6}), ("broker-b", None)]
    assert "no connection" in seen.changes[1].note


def test_one_that_no_name_server_lists_any_more_is_none_of_the_cluster(
    cluster: Cluster, brokers: GroupBrokers, ann: AbstractUser
) -> None:
    Cluster.objects.update(namesrv=brokers.namesrv)
    assert [one.item for one in run(ann, "create_topic").items] == ["broker-a"]
