"""What a run answers is sent back as it is: what takes it back, its arguments, the command that a page shows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from datetime import datetime
from html import unescape
from typing import Any

import pytest
from django.test import Client

from mqadmin.clusters.models import Cluster
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from tests.support import console_rows as seed
from tests.support.group_brokers import GroupBrokers

PROD = "/api/v1/clusters/prod"


@pytest.fixture
def brokers() -> Iterator[GroupBrokers]:
    with GroupBrokers("broker-a") as brokers:
        brokers["broker-a"].groups["billing"] = SubscriptionGroupConfig(group_name="billing")
        yield brokers


@pytest.fixture(autouse=True)
def prod(db: None, brokers: GroupBrokers, now: datetime) -> Cluster:
    cluster = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
    seed.make_group(cluster, "billing", now=now, lag=None)
    return cluster


def post(http: Client, action: str, arguments: Any) -> Any:
    answer = http.post(f"{PROD}/actions/{action}/run", {"arguments": arguments}, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.parametrize(
    ("action", "changed", "setting"),
    [
        ("set_group_consumption", {"consumption": False}, "consume_enable"),
        ("create_group", {"retry_times_max": 3}, "retry_max_times"),
    ],
)
def test_what_takes_a_run_back_is_sent_as_it_was_answered(
    http: Client, brokers: GroupBrokers, action: str, changed: dict[str, Any], setting: str
) -> None:
    before = getattr(brokers["broker-a"].groups["billing"], setting)
    run = post(http, action, {"group": "billing", **changed})
    assert getattr(brokers["broker-a"].groups["billing"], setting) != before
    again = post(http, action, run["arguments"])
    assert [one["state"] for one in again["items"]] == ["unchanged"]
    post(http, run["undo"]["action"], run["undo"]["arguments"])
    assert getattr(brokers["broker-a"].groups["billing"], setting) == before


@pytest.mark.parametrize("address", ["consumption/?consumption=false", "change/?retry_times_max=3"])
def test_the_command_of_a_page_is_accepted(http: Client, address: str) -> None:
    page = http.get(f"/clusters/prod/groups/billing/{address}").content.decode()
    found = re.search(r"curl --fail.*?(?=</)", page, re.DOTALL)
    assert found is not None
    words = shlex.split(unescape(found.group()).replace("\\\n", ""))
    path = words[-1].removeprefix("http://testserver")
    answer = http.post(path, json.loads(words[words.index("--data") + 1]), content_type="application/json")
    assert (answer.status_code, answer.json()["outcome"]) == (200, "done")
