"""The pages of flows: drawing and table say the same, names are hostile, and REST has it, too."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from mqadmin.clusters.models import Cluster, Topic, TopicKind
from tests.support import console_rows as seed

FLOWS = "/clusters/local/flows/"
HOSTILE = "<b>o'r&ders"


@pytest.fixture
def filled(cluster: Cluster, now: datetime) -> Cluster:
    for topic in ("orders", HOSTILE):
        seed.make_topic(cluster, topic, now=now)
    group = seed.make_group(cluster, "billing", now=now, lag=4_811, verdict="slow")
    seed.make_queue_offset(group, "orders", 0, now=now, lag=4_811)
    seed.make_topic(cluster, "%DLQ%billing", now=now, queue_count=0)
    Topic.objects.filter(name="%DLQ%billing").update(kind=TopicKind.DEAD_LETTER, in_per_s=2, message_count=31)
    return cluster


def page(http: Client, path: str = FLOWS) -> str:
    answer = http.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_drawing_and_table_say_the_same(filled: Cluster, http: Client) -> None:
    html = page(http)
    drawing = html[html.index('<svg class="flow"') : html.index("</svg>", html.index('<svg class="flow"'))]
    table = html[html.index('id="flow-table"') :]
    for words in ("orders", "billing", "4,811", "31"):
        assert words in drawing
        assert words in table
    assert "SLOW" in table
    assert "is-slow" in drawing


def test_edges_have_rates_in_and_out(filled: Cluster, http: Client, now: datetime) -> None:
    html = page(http)
    drawing = html[html.index('<svg class="flow"') : html.index("</svg>", html.index('<svg class="flow"'))]
    edges = re.findall(r'<g class="flow-edge.*?<text[^>]*>([^<]*)</text>', drawing)
    assert edges[:3] == ["20/s", "20/s · lag 4,811", "2.0/s"]
    seed.make_queue_offset(filled.groups.get(name="billing"), "stock", 0, now=now)
    assert "≤ 20/s · lag 4,811" in page(http), "of all that the group reads"


def test_names_are_shown_as_text(filled: Cluster, http: Client) -> None:
    assert "<b>o" not in page(http)


def test_topic_has_its_flow_as_a_tab(filled: Cluster, http: Client) -> None:
    html = page(http, "/clusters/local/topics/orders/flow/")
    assert re.search(r'href="/clusters/local/topics/orders/flow/" aria-current="page"', html)
    assert "billing" in html
    assert "/clusters/local/topics/orders/flow/" in page(http, "/clusters/local/topics/orders/")
    assert FLOWS in page(http, "/clusters/local/")


def test_filter_that_finds_nothing_says_so(filled: Cluster, http: Client) -> None:
    assert "No topic, and no group that reads one, has this in its name." in page(http, f"{FLOWS}?q=nothing")


@pytest.mark.parametrize("path", ["/clusters/nowhere/flows/", "/clusters/local/topics/nothing/flow/"])
def test_flow_of_what_is_not_there_is_not_found(filled: Cluster, http: Client, path: str) -> None:
    assert http.get(path).status_code == 404


def test_rest_has_the_same(filled: Cluster, http: Client) -> None:
    found: Any = http.get("/api/v1/clusters/local/flows?q=billing").json()
    (flow,) = found["topics"]
    assert flow["topic"] == "orders"
    assert flow["groups"] == [
        {
            "group": "billing",
            "verdict": "slow",
            "lag": 4_811,
            "out_per_s": flow["groups"][0]["out_per_s"],
            "topic_count": 1,
            "retry": None,
            "dead_letters": {"topic": "%DLQ%billing", "in_per_s": 2.0, "message_count": 31},
        }
    ]
    assert found == http.get("/api/v1/clusters/local/topics/orders/flow").json()
    assert http.get("/api/v1/clusters/nowhere/flows").status_code == 404
