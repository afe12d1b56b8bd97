"""Clusters of an install that polled several brokers of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from mqadmin.clusters.models import Cluster

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = [("mq_clusters", "0006_cluster_note")]


@pytest.fixture(autouse=True)
def latest() -> Iterator[list[tuple[str, str]]]:
    """Whatever happens to a test, the next one finds the newest tables."""
    latest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    yield latest
    MigrationExecutor(connection).migrate(latest)


@pytest.mark.sweep
def test_clusters_of_several_masters_are_asked_again_whether_they_can_be_watched(latest: list[tuple[str, str]]) -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(BEFORE)
    apps = executor.loader.project_state(BEFORE).apps
    for name, kind, masters, slaves in (
        ("several", "apache", 2, 0),
        ("one", "apache", 1, 1),
        ("ours", "ours", 1, 0),
    ):
        cluster = apps.get_model("mq_clusters", "Cluster").objects.create(name=name, namesrv="a:1", kind=kind)
        for number in range(masters + slaves):
            apps.get_model("mq_clusters", "Broker").objects.create(
                cluster=cluster, name=f"broker-{min(number, masters - 1)}", broker_id=max(0, number - masters + 1)
            )
    MigrationExecutor(connection).migrate(latest)
    assert dict(Cluster.objects.values_list("name", "kind")) == {"several": "", "one": "apache", "ours": "ours"}
