"""Names of topics and groups on pages and over REST."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

import pytest
from django.test import Client

from mqadmin.clusters.models import Cluster
from mqadmin.console.templatetags.marks import name_parts
from tests.support import console_rows as seed


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("orders", "orders"),
        ("prod%orders", '<span class="namespace" title="namespace prod">prod</span> orders'),
        ('<b>%"x"', '<span class="namespace" title="namespace &lt;b&gt;">&lt;b&gt;</span> &quot;x&quot;'),
    ],
)
def test_a_namespace_is_shown_apart_and_escaped(name: str, shown: str) -> None:
    assert name_parts(name) == shown


def test_lists_pages_and_rest_take_names_apart(http: Client, cluster: Cluster, now: datetime) -> None:
    seed.make_topic(cluster, "prod%orders", now=now)
    seed.make_group(cluster, "prod%billing", now=now)
    for kind, rest in (("topics", "orders"), ("groups", "billing")):
        for address in (f"{kind}/", f"{kind}/prod%25{rest}/"):
            assert f"prod</span> {rest}" in http.get(f"/clusters/{cluster.name}/{address}").content.decode()
        (row,) = http.get(f"/api/v1/clusters/{cluster.name}/{kind}").json()["items"]
        assert (row["name"], row["namespace"]) == (f"prod%{rest}", "prod")


def test_addresses_of_exports_and_next_pages_hold_every_name(http: Client, cluster: Cluster, now: datetime) -> None:
    group = seed.make_group(cluster, "prod%25\n>é", now=now)
    for queue_id in (0, 1):
        seed.make_queue_offset(group, "orders", queue_id, now=now)
    path = f"/clusters/{cluster.name}/groups/{quote(group.name, safe='')}"
    page = http.get(f"{path}/members/").content.decode()
    assert f'href="/api/v1/clusters/{cluster.name}/groups/prod%2525%0A%3E%C3%A9/members?format=csv"' in page
    answer = http.get(f"/api/v1{path}/queues", {"limit": 1})
    address = answer["Link"].removeprefix("<").partition(">")[0]
    assert http.get(address).json()["next_cursor"] is None
