"""ETags: an answer that is still the same costs no query of its rows."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from mqadmin.api import resource
from mqadmin.clusters.models import Cluster
from mqadmin.live import revisions
from mqadmin.live.events import live_group
from tests.support import console_rows as seed

GROUPS = "/api/v1/clusters/local/groups"


@pytest.fixture(autouse=True)
def _one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource.time, "time", lambda: 1_000_000_020.0)


def test_an_unchanged_list_is_not_read_again(
    http: Client, cluster: Cluster, now: datetime, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    seed.make_group(cluster, "billing", now=now)
    first = http.get(GROUPS)
    with django_assert_num_queries(2):  # the session and its account
        again = http.get(GROUPS, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    revisions.renew([live_group("local")])
    assert http.get(GROUPS, headers={"If-None-Match": first["ETag"]}).status_code == 200


def test_each_question_has_its_own_etag(http: Client, cluster: Cluster, now: datetime) -> None:
    seed.make_group(cluster, "billing", now=now)
    paths = [GROUPS, f"{GROUPS}?q=x", f"{GROUPS}/billing", "/api/v1/clusters", "/api/v1/clusters/local"]
    assert len({http.get(path)["ETag"] for path in paths}) == len(paths)
    revisions.renew([live_group("local", "billing")])
    assert http.get(GROUPS)["ETag"]


def test_a_group_has_a_new_etag_when_it_changes(http: Client, cluster: Cluster, now: datetime) -> None:
    seed.make_group(cluster, "billing", now=now)
    before = http.get(f"{GROUPS}/billing")["ETag"]
    revisions.renew([live_group("local", "billing")])
    assert http.get(f"{GROUPS}/billing")["ETag"] != before


def test_an_etag_holds_for_a_minute_at_most(http: Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    first = http.get(GROUPS)["ETag"]
    monkeypatch.setattr(resource.time, "time", lambda: 1_000_000_080.0)
    assert http.get(GROUPS, headers={"If-None-Match": first}).status_code == 200
