"""Exports: a whole list as a file, in chunks."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime

import pytest
from django.test import AsyncClient, Client

from mqadmin.api import exports
from mqadmin.clusters.models import Cluster
from tests.support import console_rows as seed

GROUPS = "/api/v1/clusters/local/groups"

pytestmark = pytest.mark.django_db(transaction=True)


async def text_of(http: AsyncClient, path: str, status: int = 200, **headers: str) -> str:
    answer = await http.get(path, headers=headers)
    assert answer.status_code == status
    assert answer.streaming
    return b"".join([chunk async for chunk in answer]).decode()


@pytest.fixture
def groups(cluster: Cluster, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "CHUNK_ROWS", 2)
    for number, lag in enumerate([5, 3, None, 5, 0]):
        seed.make_group(cluster, f"group-{number}", now=now, lag=lag)
    seed.make_group(cluster, '=cmd|"x"!A1', now=now, lag=1)


@pytest.mark.usefixtures("groups")
async def test_a_list_is_exported_whole_in_its_order(async_http: AsyncClient) -> None:
    text = await text_of(async_http, f"{GROUPS}?format=jsonl&sort=-lag&limit=1")
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["lag"]["value"] for row in rows] == [5, 5, 3, 1, 0, None]
    table = list(csv.DictReader(io.StringIO(await text_of(async_http, f"{GROUPS}?sort=-lag", Accept="text/csv"))))
    assert [row["lag"] for row in table] == ["5", "5", "3", "1", "0", ""]
    assert table[0]["lag_seen_at"]
    assert table[0]["is_consume_enabled"] == "true"
    assert json.loads(table[0]["verdict_numbers"]) == {}


@pytest.mark.usefixtures("groups")
async def test_no_name_becomes_a_formula(async_http: AsyncClient) -> None:
    table = csv.DictReader(io.StringIO(await text_of(async_http, f"{GROUPS}?format=csv&q=cmd")))
    assert [row["name"] for row in table] == ['\'=cmd|"x"!A1']


async def test_an_empty_list_has_its_head_line(async_http: AsyncClient, cluster: Cluster) -> None:
    (line,) = (await text_of(async_http, f"{GROUPS}?format=csv")).splitlines()
    assert line.startswith("name,namespace,verdict,verdict_since")


def test_what_is_wrong_is_a_problem_before_the_first_row(http: Client, cluster: Cluster) -> None:
    answer = http.get("/api/v1/clusters/nowhere/groups?format=csv")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
