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
from mqadmin.clusters.models import Cluster, ClusterKind, ClusterState, Group
from mqadmin.lag.models import GroupSample
from mqadmin.lag.packing import QueueSample, Sampled, pack
from mqadmin.live import revisions
from mqadmin.live.events import live_group
from mqadmin.subscriptions import asking, selectors
from mqadmin.subscriptions.models import MemberAnswer, OwnSubscription
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


def test_a_change_on_any_of_many_clusters_makes_another_etag(
    http: Client, readers: Group, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource.time, "time", lambda: 1_000_000_020.0)
    for number in range(selectors.ELSEWHERE_MAX + 5):
        seed.make_group(seed.make_cluster(f"away-{number:02}", now=now), "readers", now=now, member_count=0)
    last = f"away-{selectors.ELSEWHERE_MAX + 4:02}"
    etag = http.get(f"{HERE}/comparison")["ETag"]
    Group.objects.filter(cluster__name=last).update(member_count=1)
    revisions.renew([live_group(last, "readers")])
    answer = http.get(f"{HERE}/comparison", headers={"If-None-Match": etag})
    assert [one["cluster"] for one in answer.json()["elsewhere"]] == [last]


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
        "outcome": "no_conflict",
        "would_conflict": False,
        "findings": [],
        "not_known": [],
        "compared_count": 0,
        "unknown_count": 0,
    }


@pytest.fixture
def on_apache(http: Client, cluster: Cluster, now: datetime) -> Group:
    """A member alone in its group: a broker of Apache's has its table, and nobody has asked the member."""
    Cluster.objects.filter(pk=cluster.pk).update(kind=ClusterKind.APACHE)
    group = seed.make_group(cluster, "readers", now=now, member_count=1)
    seed.make_subscription(group, "orders", "*", now=now)
    seed.make_member(group, "a@1", now=now)
    return group


def test_a_member_that_was_not_asked_is_not_taken_for_one_that_agrees(http: Client, on_apache: Group) -> None:
    answer = check(http, topics={"orders": "A"}).json()
    assert (answer["outcome"], answer["would_conflict"], answer["findings"]) == ("not_known", None, [])
    assert answer["not_known"] == [{"client_id": "a@1", "what": ["topics"], "reason": ""}]
    assert (answer["compared_count"], answer["unknown_count"]) == (0, 1)
    assert asking.turn(on_apache.cluster, timezone.now()) == list(on_apache.members.all()), "it is asked next"


def test_why_a_member_is_not_known_is_told(http: Client, on_apache: Group, now: datetime) -> None:
    MemberAnswer.objects.create(member=on_apache.members.get(), asked_at=now, reason="timed out after 3 s")
    (silent,) = check(http, topics={"orders": "A"}).json()["not_known"]
    assert silent["reason"] == "timed out after 3 s"


def test_of_what_was_not_asked_about_nothing_has_to_be_known(http: Client, on_apache: Group, now: datetime) -> None:
    member = on_apache.members.get()
    MemberAnswer.objects.create(member=member, asked_at=now, answered_at=now, message_model="CLUSTERING")
    OwnSubscription.objects.create(member=member, topic_name="orders", expression="A", first_seen_at=now)
    assert check(http, topics={"orders": "A"}).json()["outcome"] == "no_conflict"
    answer = check(http, topics={"orders": "A"}, message_model="CLUSTERING", is_orderly=True).json()
    assert (answer["outcome"], answer["not_known"][0]["what"]) == ("not_known", ["is_orderly"])


def test_a_conflict_with_one_member_is_one_whatever_the_others_want(
    http: Client, on_apache: Group, now: datetime
) -> None:
    known = seed.make_member(on_apache, "b@1", now=now)
    MemberAnswer.objects.create(member=known, asked_at=now, answered_at=now)
    OwnSubscription.objects.create(member=known, topic_name="orders", expression="B", first_seen_at=now)
    answer = check(http, topics={"orders": "A"}).json()
    assert (answer["outcome"], answer["would_conflict"]) == ("conflict", True)
    assert [one["client_id"] for one in answer["not_known"]] == ["a@1"]


def test_who_the_members_are_is_not_known_of_a_cluster_that_does_not_answer(
    http: Client, cluster: Cluster, now: datetime
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(state=ClusterState.UNREACHABLE)
    seed.make_group(cluster, "readers", now=now, member_count=0)
    answer = check(http, topics={"orders": "A"}).json()
    assert (answer["outcome"], answer["not_known"]) == (
        "not_known",
        [{"client_id": "", "what": ["members"], "reason": ""}],
    )


@pytest.mark.parametrize(
    "topics", [{}, {"": "*"}, {"x" * 256: "*"}, {f"t{n}": "*" for n in range(101)}, {"orders": "x" * 4001}]
)
def test_what_no_member_can_want_is_refused(http: Client, readers: Group, topics: dict[str, str]) -> None:
    answer = check(http, topics=topics)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["name"].startswith("topics")
