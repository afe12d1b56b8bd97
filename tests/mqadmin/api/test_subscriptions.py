"""Members compared by REST, and what a pipeline asks before a deploy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.test import Client
from django.utils import timezone

from mqadmin.api import resource
from mqadmin.clusters.models import Cluster, Group
from mqadmin.lag.models import GroupSample
from mqadmin.lag.packing import QueueSample, Sampled, pack
from mqadmin.live import revisions
from mqadmin.live.events import live_group
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


def test_history_of_changes_and_the_same_group_elsewhere_are_told(http: Client, readers: Group, now: datetime) -> None:
    readers.subscriptions.filter(client_id="a@1").update(ended_at=now - timedelta(hours=1))
    there = seed.make_group(seed.make_cluster("there", now=now), "readers", now=now, member_count=1)
    seed.make_member(there, "d@1", now=now)
    seed.make_subscription(there, "orders", "C", now=now)
    found = http.get(f"{HERE}/comparison").json()
    assert found["elsewhere"] == [{"cluster": "there", "member_count": 1, "is_different": True}]
    newest, *begun = found["history"]
    assert (newest["client_id"], newest["topic"], newest["expression"], newest["is_end"]) == (
        "a@1",
        "orders",
        "*",
        True,
    )
    assert sorted((one["client_id"], one["expression"]) for one in begun) == [
        ("", "B"),
        ("a@1", "*"),
        ("b@1", "*"),
        ("c@1", "B"),
    ]


def test_what_the_group_subscribes_to_elsewhere_makes_another_etag(
    http: Client, readers: Group, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource.time, "time", lambda: 1_000_000_020.0)
    seed.make_group(seed.make_cluster("there", now=now), "readers", now=now, member_count=1)
    etag = http.get(f"{HERE}/comparison")["ETag"]
    assert http.get(f"{HERE}/comparison", headers={"If-None-Match": etag}).status_code == 304
    revisions.renew([live_group("there", "readers")])
    assert http.get(f"{HERE}/comparison", headers={"If-None-Match": etag}).status_code == 200


def test_cluster_that_the_caller_may_not_see_is_not_told(
    readers: Group, now: datetime, ann: AbstractUser, token_of: Callable[..., Client]
) -> None:
    there = seed.make_cluster("there", now=now)
    seed.make_group(there, "readers", now=now, member_count=1)
    http = token_of(ann, clusters=["local"])
    assert http.get(f"{HERE}/comparison").json()["elsewhere"] == []


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
    wanted = [one["topics"][0] for one in found["members"]]
    assert [one["expression"] for one in wanted] == ["*", "*", "B"]
    assert (finding["is_tie"], finding["marked"]) == (False, ["c@1"])
    (kept,) = found["table"]
    assert (kept["topic"], kept["expression"], kept["sub_version"]) == ("orders", "B", wanted[2]["sub_version"])


def test_of_equally_many_all_are_marked(http: Client, readers: Group) -> None:
    readers.members.filter(client_id="a@1").update(left_at=timezone.now())
    readers.save()
    (finding,) = http.get(f"{HERE}/comparison").json()["findings"]
    assert (finding["is_tie"], finding["marked"]) == (True, ["b@1", "c@1"])


def test_a_conflict_says_what_it_may_have_skipped(http: Client, readers: Group) -> None:
    (finding,) = http.get(f"{HERE}/comparison").json()["findings"]
    assert finding["skipped"] == {
        "method": "not_known",
        "at_most": None,
        "since": None,
        "moved_back_count": 0,
    }, "nothing was sampled"
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
