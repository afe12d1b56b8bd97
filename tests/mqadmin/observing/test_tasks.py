from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings as project

from mqadmin.celery import app
from mqadmin.clusters.models import Cluster, FollowerLease
from mqadmin.observing import tasks

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Any, ...]]]:
    """What would have gone to workers."""
    calls: list[tuple[str, tuple[Any, ...]]] = []
    for task in (tasks.follow_clusters, tasks.poll_cluster):
        monkeypatch.setattr(task, "apply_async", lambda args, *_, name=task.name, **__: calls.append((name, args)))
    return calls


def test_default_cluster_is_made_once_and_followed(sent: list[tuple[str, tuple[Any, ...]]]) -> None:
    tasks.ensure_observing()
    tasks.ensure_observing()
    cluster = Cluster.objects.get()
    assert (cluster.name, cluster.namesrv) == ("local", project.MQADMIN_NAMESRV)
    holder = str(FollowerLease.objects.get().holder)
    assert sent == [("mqadmin.observing.tasks.follow_clusters", (holder,))], "sent once per lease"


def test_default_cluster_moves_with_the_environment(sent: list[tuple[str, tuple[Any, ...]]], settings: Any) -> None:
    cluster = Cluster.objects.create(name="local", namesrv="10.0.0.1:9876", kind="apache", state="reachable")
    cluster.brokers.create(name="far-away", broker_id=0, address="10.0.0.1:10911")
    tasks.ensure_observing()
    cluster = Cluster.objects.get()
    assert (cluster.namesrv, cluster.kind, cluster.state) == (settings.MQADMIN_NAMESRV, "", "new")
    assert not cluster.brokers.exists()


def test_cluster_other_than_the_default_keeps_its_address(sent: list[tuple[str, tuple[Any, ...]]]) -> None:
    Cluster.objects.create(name="far-away", namesrv="10.0.0.1:9876")
    tasks.ensure_observing()
    assert Cluster.objects.get(name="far-away").namesrv == "10.0.0.1:9876"


def test_apache_cluster_is_polled_when_a_cycle_is_due(sent: list[tuple[str, tuple[Any, ...]]]) -> None:
    tasks.ensure_default_cluster()
    cluster = Cluster.objects.get()
    Cluster.objects.update(kind="apache")
    tasks.ensure_observing()
    tasks.ensure_observing()
    assert sent == [("mqadmin.observing.tasks.poll_cluster", (cluster.pk,))]


def test_cycle_of_a_removed_cluster_does_nothing() -> None:
    tasks.poll_cluster(4711)


@pytest.mark.parametrize(
    ("task", "queue"),
    [
        ("mqadmin.observing.tasks.follow_clusters", "following"),
        ("mqadmin.observing.tasks.ensure_observing", "jobs"),
        ("broker.tasks.drive", "scheduler"),
    ],
)
def test_every_task_has_its_queue(task: str, queue: str) -> None:
    assert app.amqp.router.route({}, task)["queue"].name == queue


def test_long_tasks_are_acknowledged_early_and_never_prefetched() -> None:
    assert app.conf.worker_disable_prefetch
    assert not app.conf.task_acks_late
    assert app.conf.broker_connection_retry_on_startup
