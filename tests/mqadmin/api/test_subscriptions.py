"""Members compared by REST, and what a pipeline asks before a deploy."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group
from mqadmin.lag.models import GroupSample
from mqadmin.lag.packing import QueueSample, Sampled, pack
from tests.support import console_rows as seed

HERE = "/api/v1/clusters/local/groups/readers/subscriptions"


@pytest.fixture
def readers(cluster: Cluster, now: datetime) -> Group:
    """Two members that read all of `orders`, a third that reads one tag of it."""
    group = seed.make_group(cluster, "readers", now=now, member_count=3)
    for client_id, expression in (("a@1", "*"), ("b@1", "*"), ("c@1", "B")):
        seed.make_member(group, client_id, now=now)
        seed.make_subscription(group, "orders", expression, now=now, client_id=client_id)
    seed.make_subscription(group, "orders", "B", now=now)
    return group


def check(http: Client, **body: Any) -> Any:
    return http.post(f"{HERE}/check", body, content_type="application/json")


def test_members_are_compared(http: Client, readers: Group) -> None:
    found = http.get(f"{HERE}/comparison").json()
    (finding,) = found["findings"]
    assert (finding["kind"], finding["topic"], finding["odd"]) == ("expression", "orders", ["c@1"])
    assert (finding["by_odd"], finding["by_rest"], finding["in_force"], finding["winner"]) == ("B", "*", "B", "c@1")
    assert [(one["client_id"], one["source"]) for one in found["members"]] == [
        ("a@1", "heartbeat"),
        ("b@1", "heartbeat"),
        ("c@1", "heartbeat"),
    ]
    assert found["members"][2]["topics"][0]["expression"] == "B"


def test_a_conflict_says_what_it_may_have_skipped(http: Client, readers: Group) -> None:
    (finding,) = http.get(f"{HERE}/comparison").json()["findings"]
    assert finding["skipped"] == {"method": "not_known", "at_most": None, "since": None}, "nothing was sampled"
    seed.make_queue_offset(readers, "orders", 0, now=timezone.now(), lag=5, committed_offset=900)
    since = datetime.fromisoformat(finding["since"])
    packed = pack(Sampled(40, 3, 0, (QueueSample("broker-a", 0, 600, 1000),)))
    at_s = int(since.timestamp()) - 20
    GroupSample.objects.create(cluster=readers.cluster, group=readers, topic_name="orders", at_s=at_s, packed=packed)
    readers.save()
    (finding,) = http.get(f"{HERE}/comparison").json()["findings"]
    assert (finding["skipped"]["method"], finding["skipped"]["at_most"]) == ("progress_passed", 300)
    assert finding["skipped"]["since"] == finding["since"]


@pytest.mark.parametrize(
    ("topics", "would_conflict"),
    [({"orders": "*"}, False), ({"orders": "A || B"}, True), ({"orders": "*", "stock": "*"}, True)],
    ids=["as most members", "another expression", "one topic more"],
)
def test_a_subscription_is_judged_before_it_is_deployed(
    http: Client, readers: Group, topics: dict[str, str], would_conflict: bool
) -> None:
    readers.members.filter(client_id="c@1").delete()
    readers.subscriptions.filter(client_id="c@1").delete()
    answer = check(http, topics=topics)
    assert answer.status_code == 200, answer.content
    assert (answer.json()["would_conflict"], answer.json()["compared_count"]) == (would_conflict, 2)
    assert all("(new)" in finding["odd"] for finding in answer.json()["findings"])


def test_nobody_online_contradicts_nothing(http: Client, cluster: Cluster, now: datetime) -> None:
    seed.make_group(cluster, "readers", now=now, member_count=0)
    assert check(http, topics={"orders": "A"}).json() == {
        "would_conflict": False,
        "findings": [],
        "compared_count": 0,
        "unknown_count": 0,
    }


@pytest.mark.parametrize(
    "topics", [{}, {"": "*"}, {"x" * 256: "*"}, {f"t{n}": "*" for n in range(101)}, {"orders": "x" * 4001}]
)
def test_what_no_member_can_want_is_refused(http: Client, readers: Group, topics: dict[str, str]) -> None:
    answer = check(http, topics=topics)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["name"].startswith("topics")
