"""Owners, descriptions and runbooks of topics and groups; notes of clusters."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from mqadmin.clusters.models import Cluster
from mqadmin.ownership.models import Ownership
from tests.support import console_rows as seed

LOCAL = "/api/v1/clusters/local"
TEXTS = {"owner": "shop", "description": "Each step.", "runbook": "https://wiki.example.org/orders"}


@pytest.fixture
def described(cluster: Cluster, now: datetime) -> None:
    for name in ("orders", "refunds", "mails"):
        seed.make_topic(cluster, name, now=now)
        seed.make_group(cluster, name, now=now)
    for kind in ("topic", "group"):
        Ownership.objects.create(cluster=cluster, kind=kind, name="orders", **TEXTS)
        Ownership.objects.create(cluster=cluster, kind=kind, name="mails", owner="crm")


@pytest.mark.usefixtures("described")
@pytest.mark.parametrize("what", ["topics", "groups"])
def test_each_says_whose_it_is_and_can_be_found_by_it(http: Client, what: str) -> None:
    rows = {row["name"]: row for row in http.get(f"{LOCAL}/{what}").json()["items"]}
    assert {name: row["owner"] for name, row in rows.items()} == {"orders": "shop", "refunds": "", "mails": "crm"}
    assert {text: rows["orders"][text] for text in TEXTS} == TEXTS
    found = http.get(f"{LOCAL}/{what}", {"owner": "shop"}).json()
    assert ([row["name"] for row in found["items"]], found["total_count"]) == (["orders"], 1)
    assert http.get(f"{LOCAL}/{what}", {"owner": "sho"}).json()["items"] == []
    detail = http.get(f"{LOCAL}/{what}/orders").json()
    assert {text: detail[text] for text in TEXTS} == TEXTS
    assert http.get(f"{LOCAL}/{what}/refunds").json()["owner"] == ""


@pytest.mark.usefixtures("described")
def test_an_owner_costs_one_query_for_a_page(http: Client, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(8):
        http.get(f"{LOCAL}/groups")


@pytest.mark.usefixtures("described")
@pytest.mark.parametrize(("action", "argument"), [("describe_topic", "topic"), ("describe_group", "group")])
def test_a_change_of_the_owner_changes_the_etag(
    http: Client, action: str, argument: str, django_capture_on_commit_callbacks: Any
) -> None:
    paths = [f"{LOCAL}/{argument}s", f"{LOCAL}/{argument}s/orders"]
    before = {path: http.get(path)["ETag"] for path in paths}
    body = {"arguments": {argument: "orders", "owner": "billing"}}
    with django_capture_on_commit_callbacks(execute=True):
        answer = http.post(f"{LOCAL}/actions/{action}/run", body, content_type="application/json")
        assert answer.status_code == 200
    for path in paths:
        again = http.get(path, headers={"If-None-Match": before[path]})
        assert again.status_code == 200
        assert "billing" in again.content.decode()


def test_a_cluster_has_its_note(http: Client, cluster: Cluster, django_capture_on_commit_callbacks: Any) -> None:
    before = http.get(LOCAL)
    assert before.json()["note"] == ""
    body = {"arguments": {"cluster": "local", "namesrv": cluster.namesrv, "note": "of the shop"}}
    with django_capture_on_commit_callbacks(execute=True):
        answer = http.post("/api/v1/actions/change_cluster/run", body, content_type="application/json")
        assert answer.status_code == 200, answer.content
    after = http.get(LOCAL, headers={"If-None-Match": before["ETag"]})
    assert (after.status_code, after.json()["note"]) == (200, "of the shop")
    assert http.get("/api/v1/clusters").json()["items"][0]["note"] == "of the shop"
