"""Members of our brokers are compared as soon as a heartbeat is observed."""

from __future__ import annotations

from datetime import datetime, timedelta

from mqadmin.clusters.models import Cluster, Group, Member, Subscription
from mqadmin.observing.signals import (
    GroupsChanged,
    MembershipChange,
    RebalanceObserved,
    groups_changed,
    publish,
    rebalance_observed,
)
from mqadmin.subscriptions import retention
from mqadmin.subscriptions.models import GroupConflict, MemberAnswer, OwnSubscription
from tests.support import console_rows as seed


def changed(group: Group, at: datetime) -> int:
    event = GroupsChanged(cluster=group.cluster, at=at, is_watched=True, group_ids=[group.pk])
    return publish(groups_changed, event)


def test_heartbeats_that_differ_are_a_conflict_until_they_agree(
    billing: Group, members: list[Member], now: datetime
) -> None:
    for member in members:
        seed.make_subscription(billing, "orders", "*", now=now, client_id=member.client_id)
    changed(billing, now)
    assert not GroupConflict.objects.exists()
    Subscription.objects.filter(client_id=members[1].client_id).update(expression="B")
    changed(billing, now)
    assert GroupConflict.objects.get().odd_count == 1
    Subscription.objects.filter(client_id=members[1].client_id).update(expression="*")
    changed(billing, now)
    assert not GroupConflict.objects.exists()


def test_a_conflict_ends_with_the_members(billing: Group, members: list[Member], now: datetime) -> None:
    GroupConflict.objects.create(
        group=billing, kind="topics", topic_name="orders", odd_count=1, member_count=3, since=now, seen_at=now
    )
    Member.objects.update(left_at=now)
    Group.objects.filter(pk=billing.pk).update(member_count=0)
    changed(billing, now)
    assert not GroupConflict.objects.exists()


def test_a_conflict_whose_members_are_not_known_any_more_stays(
    billing: Group, members: list[Member], now: datetime
) -> None:
    GroupConflict.objects.create(
        group=billing, kind="topics", topic_name="orders", odd_count=1, member_count=3, since=now, seen_at=now
    )
    changed(billing, now)
    assert GroupConflict.objects.exists()


def test_members_of_a_group_that_was_rebalanced_are_asked_next(
    apache: Cluster, billing: Group, members: list[Member], now: datetime
) -> None:
    MemberAnswer.objects.create(member=members[0], asked_at=now)
    change = MembershipChange(group_id=billing.pk, member_count=3)
    event = RebalanceObserved(cluster=apache, at=now, is_watched=False, changes={"billing": change}, is_sampled=True)
    publish(rebalance_observed, event)
    assert MemberAnswer.objects.get().asked_at is None


def test_what_ended_long_ago_is_removed(billing: Group, members: list[Member], now: datetime) -> None:
    long_ago = now - retention.KEPT_FOR - timedelta(days=1)
    OwnSubscription.objects.create(member=members[0], topic_name="orders", first_seen_at=long_ago, ended_at=long_ago)
    seed.make_subscription(billing, "orders", "A", now=now, ended_at=long_ago)
    Member.objects.filter(pk=members[2].pk).update(left_at=long_ago)
    assert retention.remove_old(now) == 3
    assert set(Member.objects.values_list("client_id", flat=True)) == {member.client_id for member in members[:2]}
    assert Subscription.objects.filter(ended_at=None).count() == 1
