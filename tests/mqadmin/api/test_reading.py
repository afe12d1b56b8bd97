"""Reading: each address answers with what the page of the same name shows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from mqadmin.clusters.held_queues import HeldQueue
from mqadmin.clusters.models import Cluster, Group, MemberProgress
from remoting.wire.bodies.message_queue import MessageQueue
from tests.support import console_rows as seed

CLIENT = "10.0.3.7@2211#1"


@pytest.fixture
def group(cluster: Cluster, now: datetime) -> Group:
    """Stalled: 12,049 messages wait on queue 0 of orders."""
    seed.make_topic(cluster, "orders", now=now)
    group = seed.make_group(
        cluster,
        "billing",
        now=now,
        verdict="stalled",
        verdict_rule="offset_stands",
        verdict_numbers={"members": 1, "lag": 12_049},
        lag=12_049,
        behind_since=now - timedelta(minutes=21),
        behind_method="observed",
        member_count=1,
    )
    seed.make_member(group, CLIENT, now=now)
    seed.make_queue_offset(group, "orders", 0, now=now, owner=CLIENT, lag=12_049, committed_offset=120_331)
    seed.make_subscription(group, "orders", "paid || refunded", now=now)
    seed.make_event(
        group,
        "queues_moved",
        at=now - timedelta(minutes=3),
        moves=[{"topic": "orders", "broker": "broker-a", "queue_id": 0, "from": "", "to": CLIENT}],
    )
    return group


def get(http: Client, path: str, **query: Any) -> Any:
    answer = http.get(f"/api/v1/{path}", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_what_is_in_flight_is_shown_apart_from_lag_by_queue_and_member(
    http: Client, group: Group, now: datetime
) -> None:
    told_at = now - timedelta(seconds=9)
    assert get(http, "clusters/local/groups/billing/queues")["items"][0]["in_flight"] == {
        "value": None,
        "seen_at": None,
    }
    held = [
        HeldQueue(MessageQueue("orders", "broker-a", 0), 120_331, 0, 32).as_row(),
        HeldQueue(MessageQueue("%RETRY%billing", "broker-a", 0), 4, 0, 1).as_row(),
        HeldQueue(MessageQueue("orders", "broker-a", 1), None, 0).as_row(),
    ]
    MemberProgress.objects.create(member=group.members.get(), told_at=told_at, queues=held)
    (queue,) = get(http, "clusters/local/groups/billing/queues")["items"]
    assert (queue["lag"], queue["in_flight"]["value"]) == (12_049, 32)
    assert queue["in_flight"]["seen_at"]
    (member,) = get(http, "clusters/local/groups/billing/members")["items"]
    assert member["in_flight"]["value"] == 33, "what was not told is not counted"


def test_a_cluster_is_shown_with_the_sums_over_what_is_in_it(http: Client, group: Group) -> None:
    (listed,) = get(http, "clusters")["items"]
    shown = get(http, "clusters/local")
    assert shown["lag"]["value"] == 12_049
    assert (shown["broker_count"], shown["topic_count"], shown["group_count"], shown["attention_count"]) == (1, 1, 1, 1)
    assert listed["name"] == shown["name"] == "local"
    assert get(http, "clusters", q="LOC")["total_count"] == 1
    assert get(http, "clusters", q="prod")["items"] == []


def test_a_broker_is_shown_with_its_scheduler(http: Client, group: Group) -> None:
    (broker,) = get(http, "clusters/local/brokers")["items"]
    assert (broker["name"], broker["version"], broker["is_answering"]) == ("broker-a", "5.3.2", True)
    assert broker["scheduler"]["driver"] == "scheduler@shop-1"
    assert [kind["late_ms"] for kind in broker["scheduler"]["kinds"]] == [14, 4_200, None]


def test_a_topic_is_shown_with_its_queues_and_readers(http: Client, group: Group) -> None:
    (listed,) = get(http, "clusters/local/topics")["items"]
    shown = get(http, "clusters/local/topics/orders")
    assert listed.items() <= shown.items()
    assert shown["group_count"] == 1
    assert [queue["queue_id"] for queue in shown["queues"]] == [0, 1, 2, 3]
    (reader,) = shown["readers"]
    assert (reader["group"], reader["verdict"], reader["lag"]["value"]) == ("billing", "stalled", 12_049)


def test_a_group_is_shown_with_its_verdict_and_figures(http: Client, group: Group) -> None:
    (listed,) = get(http, "clusters/local/groups")["items"]
    shown = get(http, "clusters/local/groups/billing")
    assert listed.items() <= shown.items()
    assert (shown["verdict"], shown["verdict_numbers"]) == ("stalled", {"members": 1, "lag": 12_049})
    assert shown["lag"]["value"] == 12_049
    assert shown["lag"]["seen_at"]
    assert shown["behind"]["is_at_least"] is True
    assert shown["behind"]["method"] == "from_samples"
    assert shown["drain"] == {"when": "never", "seconds": None, "confidence": "few_samples", "per_s": 0.0}


def test_what_is_in_a_group_has_its_own_addresses(http: Client, group: Group) -> None:
    here = "clusters/local/groups/billing"
    (queue,) = get(http, f"{here}/queues")["items"]
    assert (queue["topic"], queue["owner"], queue["lag"]) == ("orders", CLIENT, 12_049)
    (member,) = get(http, f"{here}/members")["items"]
    assert (member["client_id"], member["queue_count"], member["left_at"]) == (CLIENT, 1, None)
    assert get(http, f"{here}/members", departed="true")["items"] == []
    (subscription,) = get(http, f"{here}/subscriptions")["items"]
    assert (subscription["client_id"], subscription["expression"]) == ("", "paid || refunded")
    (moved,) = get(http, f"{here}/rebalances")["items"]
    assert (moved["kind"], moved["details"]["moves"][0]["to"]) == ("queues_moved", CLIENT)
    assert get(http, "clusters/local/rebalances")["items"] == [moved]
    calm = get(http, f"{here}/churn")
    assert (calm["restlessness"], calm["day"]) == ("calm", {"rebalance_count": 1, "lost_count": 0, "score": 1})
    assert get(http, f"{here}/lag-history")["items"][-1]["lag"] == 12_049
    curve = get(http, f"{here}/curve?minutes=15")["items"]
    assert {point["lag"] for point in curve} == {None}, "nothing was sampled"
    assert get(http, "clusters/local/lag-history")["items"] == []


def test_times_without_samples_are_listed_the_latest_first(http: Client, cluster: Cluster, now: datetime) -> None:
    now_s = int(now.timestamp())
    for state, since, until in (("complete", -900, -600), ("failed", -570, -300), ("complete", -270, 0)):
        note = "the cluster does not answer" if state == "failed" else ""
        cluster.sampled_spans.create(state=state, note=note, since_s=now_s + since, until_s=now_s + until)
    (gap,) = get(http, "clusters/local/gaps")["items"]
    assert (gap["state"], gap["note"]) == ("failed", "the cluster does not answer")
    assert datetime.fromisoformat(gap["until"]) - datetime.fromisoformat(gap["since"]) == timedelta(seconds=270)


def test_what_is_not_known_is_null(http: Client, cluster: Cluster, now: datetime) -> None:
    seed.make_group(cluster, "new", now=now, verdict="unknown", lag=None, in_per_s=None, offsets_seen_at=None)
    shown = get(http, "clusters/local/groups/new")
    assert shown["lag"] == {"value": None, "seen_at": None}
    assert shown["drain"]["when"] == "unknown"


def test_names_may_hold_any_character(http: Client, cluster: Cluster, now: datetime) -> None:
    for name in ["a/b", "<b>", "x\ny", "‮abc", "ü"]:
        seed.make_group(cluster, name, now=now)
    names = [row["name"] for row in get(http, "clusters/local/groups")["items"]]
    assert sorted(names) == sorted(["a/b", "<b>", "x\ny", "‮abc", "ü"])
    assert get(http, "clusters/local/groups/a%2Fb")["name"] == "a/b"
    assert get(http, "clusters/local/groups/x%0Ay")["name"] == "x\ny"
