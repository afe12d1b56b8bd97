"""What members counted is added up by topic, for the cluster that they consume from."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from consumer.models import DeliveryHour
from mqadmin.clusters.models import Cluster
from mqadmin.lag.deliveries import TopicDelivery, delivery_counts, latest_deliveries

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 22, 14, 20, tzinfo=UTC)
HOUR = NOW.replace(minute=0)


@pytest.fixture
def cluster(settings: Any) -> Cluster:
    settings.MQADMIN_NAMESRV = "127.0.0.1:9876"
    settings.MQADMIN_CLUSTERS = {"payments": "10.0.0.5:9876"}
    return Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")


def counted(hours_ago: int, member: str, *counts: tuple[int, int], topic: str = "orders", cluster: str = "") -> None:
    hour_s = int(HOUR.timestamp()) - hours_ago * 3600
    DeliveryHour.objects.create(
        cluster=cluster, group="billing", topic=topic, member=member, hour_s=hour_s, counts=[*map(list, counts)]
    )


def test_members_are_added_up_bucket_by_bucket(cluster: Cluster) -> None:
    counted(0, "a", (3, 2), (5, 1))
    counted(0, "b", (5, 4), (1, 1))
    counted(1, "a", (9, 9))
    counted(0, "c", (9, 9), cluster="payments")
    assert delivery_counts(cluster, HOUR) == {("billing", "orders"): [(1, 1), (3, 2), (5, 5)]}


def test_a_page_tells_of_this_hour_and_the_last_one(cluster: Cluster) -> None:
    counted(0, "a", (3, 98))
    counted(1, "a", (9, 2))
    counted(2, "a", (200, 99))
    counted(0, "a", (7, 1), topic="refunds")
    assert latest_deliveries(cluster, "billing", NOW) == [
        TopicDelivery("orders", 100, 0.003, 0.003, 0.009),
        TopicDelivery("refunds", 1, 0.007, 0.007, 0.007),
    ]
    assert latest_deliveries(cluster, "ledger", NOW) == []


def test_of_a_cluster_that_the_settings_do_not_name_nothing_is_known(cluster: Cluster) -> None:
    counted(0, "a", (3, 2))
    assert delivery_counts(Cluster.objects.create(name="other", namesrv="10.9.9.9:9876"), HOUR) == {}
