"""Java members of one group that subscribe differently, on our broker and on Apache's: found, explained, gone again."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from mqadmin.clusters import models
from mqadmin.clusters.models import POLLED_KINDS, ClusterKind, ClusterState
from mqadmin.observing import polling_cycle
from mqadmin.subscriptions import asking
from mqadmin.subscriptions.consistency import FindingKind, Source
from mqadmin.subscriptions.models import GroupConflict, MemberAnswer
from mqadmin.subscriptions.selectors import compared
from tests.journeys.acting import cluster, java  # noqa: F401 - fixtures
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def observed(cluster) -> Callable[[], None]:
    """One cycle of polling, and one round of questions to members: of ours, too, as if it could not be watched."""
    there = models.Cluster.objects.create(name="there", namesrv=cluster.namesrv, kind=ClusterKind.APACHE)

    def observe() -> None:
        polling_cycle.poll_once(there, timezone.now())
        models.Cluster.objects.filter(pk=there.pk).update(kind=ClusterKind.APACHE, state=ClusterState.REACHABLE)
        there.refresh_from_db()
        assert there.kind in POLLED_KINDS
        MemberAnswer.objects.update(asked_at=None)
        asking.ask_round(there, timezone.now())

    return observe


def test_members_with_different_tags_are_found_and_gone_when_one_leaves(java, fresh, observed) -> None:
    topic, group, producer = fresh("tagged"), fresh("readers"), fresh("sender")
    java.producer(producer)
    java.send(producer, topic, body="warm-up")
    first, second = fresh("first"), fresh("second")
    java.consumer(first, group, topic, expression="A")
    java.consumer(second, group, topic, expression="B")

    def is_found() -> bool:
        observed()
        return GroupConflict.objects.filter(group__name=group, kind=FindingKind.EXPRESSION).exists()

    wait_until(is_found, what="the conflict of tags")
    row = GroupConflict.objects.select_related("group").get(group__name=group)
    assert (row.topic_name, row.odd_count, row.member_count) == (topic, 1, 2)
    found = compared(row.group, models.Cluster.objects.all())
    assert {member.source for member in found.view.members} == {Source.OWN_ANSWER}
    (conflict,) = found.findings
    assert {conflict.by_odd, conflict.by_rest} == {"A", "B"}
    assert conflict.in_force in ("A", "B")
    assert conflict.winner in {member.client_id for member in found.view.members}
    java.stop(second)

    def is_gone() -> bool:
        observed()
        return not GroupConflict.objects.filter(group__name=group).exists()

    wait_until(is_gone, what="the end of the conflict")
    java.stop(first)
    java.stop(producer)


def test_members_with_different_topics_are_found(java, fresh, observed) -> None:
    one_topic, other_topic, group, producer = fresh("one"), fresh("other"), fresh("split"), fresh("sender")
    java.producer(producer)
    java.send(producer, one_topic, body="warm-up")
    java.send(producer, other_topic, body="warm-up")
    first, second = fresh("first"), fresh("second")
    java.consumer(first, group, one_topic)
    java.consumer(second, group, other_topic)

    def is_found() -> bool:
        observed()
        return GroupConflict.objects.filter(group__name=group, kind=FindingKind.TOPICS).exists()

    wait_until(is_found, what="the conflict of topics")
    group_row = models.Group.objects.get(name=group)
    found = compared(group_row, models.Cluster.objects.all()).findings
    assert {conflict.topic for conflict in found if conflict.kind == FindingKind.TOPICS} == {one_topic, other_topic}
    java.stop(second)
    java.stop(first)
    java.stop(producer)
