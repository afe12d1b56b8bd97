"""What instances wait for, read from the rows: on the group's page and over REST."""

from __future__ import annotations

import html
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from consumer.hosting import loops_worker
from consumer.hosting.leases import Worker
from consumer.models import HostedGroup, InstanceLease, LoopsWorker
from mqadmin.clusters.models import Cluster
from mqadmin.hosting.waits import waits
from tests.support import console_rows as seed
from tests.support.people import give_session

HERE = "clusters/local/groups/billing"


@pytest.fixture
def cluster(db: None, settings: Any) -> Cluster:
    cluster = seed.make_cluster("local", now=timezone.now())
    settings.MQADMIN_NAMESRV = cluster.namesrv
    seed.make_group(cluster, "billing", now=timezone.now())
    return cluster


@pytest.fixture
def hosted(cluster: Cluster) -> HostedGroup:
    return HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)


@pytest.fixture
def http(ann: AbstractUser) -> Client:
    client = Client()
    give_session(client, ann)
    return client


def start_worker(name: str = "loops-1@here", slots: int = 1) -> None:
    loops_worker.register(Worker(name, uuid.uuid4()), slots=slots)


def runs(group: HostedGroup, **changes: Any) -> None:
    values = {"worker": "loops-1@here", "state": "running", "heartbeat_at": timezone.now(), **changes}
    InstanceLease.objects.create(group=group, **values)


def found(cluster: Cluster) -> list[tuple[str, int]]:
    return [(one.why.value, one.count) for one in waits(cluster, "billing")]


def test_it_follows_the_rows(cluster: Cluster, hosted: HostedGroup) -> None:
    assert found(cluster) == [("no_worker", 2)]
    start_worker()
    assert found(cluster) == [("unplaced", 2)]
    runs(hosted)
    assert found(cluster) == [("slots_taken", 1)]
    LoopsWorker.objects.update(declared={"mail": "mails (*)"})
    assert found(cluster) == [("undeclared", 1)]
    LoopsWorker.objects.update(is_draining=True)
    assert found(cluster) == [("leaving", 1)]
    InstanceLease.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=12))
    assert found(cluster) == [("silent", 1), ("leaving", 1)]
    HostedGroup.objects.update(is_stopped=True)
    assert found(cluster) == [("stopped", 2)]


def test_an_instance_that_failed_is_waited_for(cluster: Cluster, hosted: HostedGroup) -> None:
    start_worker(slots=4)
    runs(hosted, state="ended", ended_at=timezone.now(), is_failure=True)
    runs(hosted, state="ended", ended_at=timezone.now() - timedelta(minutes=6), is_failure=True)
    (reason,) = waits(cluster, "billing")
    assert (reason.why, reason.numbers["failures"]) == ("failed", 1)


def test_one_that_stops_has_its_slot_and_does_not_count(cluster: Cluster, hosted: HostedGroup) -> None:
    start_worker()
    runs(hosted, state="stopping", desired_state="stop")
    (reason,) = waits(cluster, "billing")
    assert (reason.why, reason.count, reason.numbers["ending"]) == ("slots_taken", 2, 1)


def test_a_group_that_has_its_instances_costs_two_queries(cluster: Cluster, hosted: HostedGroup) -> None:
    runs(hosted)
    runs(hosted)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert waits(cluster, "billing") == ()
    assert len(queries) == 2


def test_the_page_says_it_and_rest_too(http: Client, cluster: Cluster, hosted: HostedGroup) -> None:
    start_worker()
    mail = HostedGroup.objects.create(group="mail", wanted_instances=1, declared_instances=1)
    runs(mail)
    page = html.unescape(http.get(f"/{HERE}/").content.decode())
    assert 'data-waits="slots_taken"' in page
    assert "2 instances wait for a free worker process: of the workers’ 1 slots all are taken (mail × 1)." in page
    shown = http.get(f"/api/v1/{HERE}/instances").json()
    assert (shown["wanted"], shown["running"], shown["starting"], shown["is_stopped"]) == (2, 0, 0, False)
    (wait,) = shown["waits"]
    assert (wait["why"], wait["count"], wait["numbers"]["groups"]) == (
        "slots_taken",
        2,
        [{"group": "mail", "count": 1}],
    )
    assert wait["words"] in page


def test_what_the_sentence_says_is_not_said_twice(http: Client, cluster: Cluster, hosted: HostedGroup) -> None:
    HostedGroup.objects.update(is_stopped=True)
    assert "data-waits" not in http.get(f"/{HERE}/").content.decode()
    assert http.get(f"/api/v1/{HERE}/instances").json()["waits"][0]["why"] == "stopped"


def test_a_group_that_is_not_hosted_has_no_instances(http: Client, cluster: Cluster) -> None:
    assert waits(cluster, "billing") == ()
    assert http.get(f"/api/v1/{HERE}/instances").status_code == 404
    assert http.get(f"/{HERE}/").status_code == 200
