from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client

from consumer.hosting import loops_worker
from consumer.hosting.leases import Worker
from consumer.models import HostedGroup, InstanceLease, LeaseState, LoopsWorker
from mqadmin.people.roles import Role
from tests.support.people import make_person


@pytest.fixture
def worker(db: None) -> None:
    group = HostedGroup.objects.create(group="billing", wanted_instances=1, declared_instances=1)
    loops_worker.register(Worker("loops-1@here", uuid.uuid4()), slots=4)
    InstanceLease.objects.create(group=group, worker="loops-1@here", state=LeaseState.RUNNING)


def test_the_page_lists_workers_and_leads_to_draining(http: Client, worker: None) -> None:
    page = http.get("/workers/").content.decode()
    for words in ('data-row="loops-1@here"', "billing", "1 of 4", "/workers/loops-1@here/draining/"):
        assert words in page
    form = http.get("/workers/loops-1@here/draining/").content.decode()
    assert "<h1>Drain a worker, or use it again: loops-1@here</h1>" in form
    (row,) = http.get("/api/v1/workers").json()["items"]
    assert (row["node"], row["state"], row["slots"], row["groups"]) == ("loops-1@here", "ok", 4, ["billing"])


def test_instances_on_further_clusters_are_told_apart_and_lead_to_their_own_page(
    http: Client, cluster: Any, worker: None, settings: Any
) -> None:
    settings.MQADMIN_CLUSTERS = {"payments": cluster.namesrv, "stock": "10.9.9.9:9876"}
    settings.MQADMIN_NAMESRV = "10.9.9.8:9876"
    for name in ("payments", "stock"):
        group = HostedGroup.objects.create(cluster=name, group="billing", wanted_instances=1, declared_instances=1)
        InstanceLease.objects.create(group=group, worker="loops-1@here", state=LeaseState.RUNNING)
    page = http.get("/workers/").content.decode()
    assert f'<a href="/clusters/{cluster.name}/groups/billing/members/">billing@payments</a>' in page
    assert "billing@stock" in page
    (row,) = http.get("/api/v1/workers").json()["items"]
    assert row["groups"] == ["billing", "billing@payments", "billing@stock"]


def test_workers_whose_code_declares_something_else_are_named(http: Client, worker: None) -> None:
    assert "declares different listeners" not in http.get("/workers/").content.decode()
    for number, declared in ((2, "orders (*)"), (3, "orders (paid)")):
        node = Worker(f"loops-{number}@here", uuid.uuid4())
        loops_worker.register(node, slots=4)
        LoopsWorker.objects.filter(node=node.node).update(declared={"billing": declared})
    page = http.get("/workers/").content.decode()
    assert "declares different listeners" in page
    assert "<strong>billing</strong>: orders (paid) – loops-3@here" in page


def test_without_a_worker_the_page_says_what_to_start(http: Client) -> None:
    assert "No worker yet" in http.get("/workers/").content.decode()


@pytest.mark.parametrize(("role", "status"), [(Role.VIEWER, 403), (Role.OPERATOR, 200)])
def test_who_may_see_the_workers(worker: None, role: Role, status: int) -> None:
    client = Client()
    client.force_login(make_person("ann", role))
    assert client.get("/workers/").status_code == status


def test_a_hosted_group_is_stopped_from_its_page(
    http: Client, cluster: Any, group: Any, worker: None, settings: Any
) -> None:
    settings.MQADMIN_NAMESRV = cluster.namesrv
    address = f"/clusters/{cluster.name}/groups/billing"
    assert f"{address}/instances/running/" in http.get(f"{address}/members/").content.decode()
    HostedGroup.objects.update(is_stopped=True)
    assert "Stopped: this project’s workers run 1 instance" in http.get(f"{address}/members/").content.decode()
