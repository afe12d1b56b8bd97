"""Clients with names that no database keeps: they are members like others, and stop nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group, Member, QueueOffset, Subscription, Topic
from mqadmin.observing import synchroniser
from mqadmin.observing.observation import (
    BrokerObserved,
    CommitObserved,
    ConsumptionObserved,
    GroupObserved,
    GroupSettingsObserved,
    MemberObserved,
    Observation,
    ObservedEvent,
    Owner,
    QueueObserved,
    SubscriptionKey,
    TopicObserved,
)
from remoting.wire.bodies.message_queue import MessageQueue

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LONG, NUL = "x" * 300, "a\0b"
QUEUE = MessageQueue("orders", "broker-a", 0)
MEMBERS = tuple(
    MemberObserved(
        client_id=name,
        address=name,
        language=name,
        version=493,
        differences=[{"topic": name, "expression": name, "expression_type": None, "others": [name], "is_over": False}],
    )
    for name in ("c1", LONG, NUL)
)
BILLING = GroupObserved(
    name="billing",
    settings=GroupSettingsObserved(is_consume_enabled=True, retry_times_max=16),
    consumption=ConsumptionObserved("CLUSTERING", "CONSUME_PASSIVELY", "CONSUME_FROM_LAST_OFFSET"),
    members=MEMBERS,
    subscriptions={SubscriptionKey(name, name, name, name[:30]): 1 for name in ("c1", LONG, NUL)},
    owners={QUEUE: Owner(NUL, NOW, NOW), MessageQueue(NUL, "broker-a", 0): Owner("c1", NOW, NOW)},
)
OBSERVED = Observation(
    at=NOW,
    is_complete=True,
    topics=tuple(TopicObserved(name, 4, 4, 6) for name in ("orders", LONG, NUL)),
    gone_topics=(NUL,),
    queues=tuple(QueueObserved(MessageQueue(name, "broker-a", 0), 0, 9, NOW) for name in ("orders", LONG, NUL)),
    groups=(BILLING, replace(BILLING, name=LONG), replace(BILLING, name=NUL)),
    gone_groups=(NUL,),
    committed=(CommitObserved("billing", QUEUE, 3), CommitObserved(NUL, QUEUE, 3), CommitObserved(LONG, QUEUE, 3)),
    events=(
        ObservedEvent(key="1:1", at=NOW, kind="member_joined", group="billing", client_id=NUL),
        ObservedEvent(key="1:2", at=NOW, kind="member_joined", group=NUL, client_id="c1"),
    ),
)


@pytest.mark.parametrize("is_watched", [True, False])
def test_what_cannot_be_kept_costs_no_more_than_itself(is_watched: bool) -> None:
    cluster = Cluster.objects.create(name="local", namesrv="127.0.0.1:9876", kind="ours")
    for _again in range(2):
        synchroniser.apply(cluster, OBSERVED, is_watched=is_watched)
    assert list(Topic.objects.values_list("name", flat=True)) == ["orders"]
    assert list(Group.objects.values_list("name", flat=True)) == ["billing"]
    assert sorted(Member.objects.values_list("client_id", flat=True)) == ["a␀b", "c1", "x" * 255]
    assert set(Subscription.objects.values_list("expression", flat=True)) == {"c1", LONG, "a␀b"}
    assert Member.objects.get(client_id="a␀b").differences[0]["others"] == ["a␀b"]
    assert QueueOffset.objects.get(group__name="billing", topic_name="orders").committed_offset == 3


def test_a_broker_under_such_a_name_is_left_out() -> None:
    cluster = Cluster.objects.create(name="local", namesrv="127.0.0.1:9876", kind="ours")
    observed = [
        BrokerObserved(name=name, broker_id=0, address="127.0.0.1:1", error="no\0") for name in ("broker-a", LONG, NUL)
    ]
    synchroniser.apply_brokers(cluster, observed, NOW)
    assert list(cluster.brokers.values_list("name", "last_error")) == [("broker-a", "no␀")]
