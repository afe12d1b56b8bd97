"""A group that fails is named so until it is over, and one whose members contradict each other says what that skipped.

On our broker, followed as the console does it. Members are real ones: of our own consumer, and of Apache's in Java.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group, Verdict
from mqadmin.events.kinds import EventKind
from mqadmin.events.models import Event
from mqadmin.lag import failing, sampling
from mqadmin.lag.models import GroupSample
from mqadmin.subscriptions.consistency import FindingKind
from mqadmin.subscriptions.selectors import compared
from mqadmin.subscriptions.skipped import SkippedMethod
from tests.support.failing_group import FailingGroup
from tests.support.follower import follower_thread
from tests.support.java_client import JavaClient
from tests.support.our_broker import OurBroker
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]

# Ten minutes are what people look back on; the rule is the same.
WINDOW_S = 25
COUNT = 8
CALM = (Verdict.OK, Verdict.QUIET)


@pytest.fixture
def followed(ours_rocketmq: OurBroker) -> Iterator[Cluster]:
    cluster = Cluster.objects.create(name="here", namesrv=ours_rocketmq.namesrv)
    with follower_thread(stopped_within_s=120):
        yield cluster


def told(group: str) -> list[dict[str, Any]]:
    """Returns what scripts were told of the group's verdicts."""
    rows = Event.objects.filter(kind=EventKind.VERDICT, group_name=group).order_by("pk")
    return list(rows.values_list("data", flat=True))


def has_consumed(group: str, count: int) -> bool:
    """Tells whether the console knows that the group has consumed so many messages, and that none waits."""
    rows = Group.objects.filter(name=group, lag=0, unknown_queue_count=0)
    return rows.filter(committed_total=count).exists()


def test_group_whose_listener_fails_is_failing_until_that_was_long_ago(
    followed: Cluster, ours_rocketmq: OurBroker, fresh: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failing, "WINDOW_S", WINDOW_S)
    monkeypatch.setattr(failing, "AGAIN_S", 1)
    topic, name = fresh("payments"), fresh("payers")
    with FailingGroup(ours_rocketmq, topic, name) as group:
        wait_until(lambda: Group.objects.filter(name=name, lag=0, verdict__in=CALM).exists(), what="a group at rest")
        group.send_and_fail("first", "second")
        failed = wait_until(lambda: [one for one in told(name) if one["verdict"] == Verdict.FAILING], what="FAILING")
        assert failed[0]["was"] in CALM
        assert failed[0]["rule"] == "messages_die"
        assert 1 <= failed[0]["numbers"]["died"] <= 2
        group.heal()
        wait_until(lambda: told(name)[-1]["verdict"] in CALM, what="no longer FAILING")
    row = Group.objects.get(name=name)
    assert (row.verdict in CALM, row.died_lately) == (True, 0)
    assert [one["verdict"] for one in told(name)].count(Verdict.FAILING) == 1


@pytest.mark.java
def test_members_with_different_tags_skip_messages_and_the_page_says_how_many_at_most(
    followed: Cluster, java_process_5_4_0: JavaClient, ours_rocketmq: OurBroker, fresh: Any, admin_client: Client
) -> None:
    java = java_process_5_4_0.on(ours_rocketmq.namesrv)
    topic, group, sender, first, second = (fresh(word) for word in ("tagged", "readers", "sender", "first", "second"))
    java.producer(sender)
    java.send(sender, topic, body="before", tag="A", count=COUNT)
    java.consumer(first, group, topic, expression="A")
    wait_until(lambda: has_consumed(group, COUNT), what="all consumed before the conflict")

    def is_sampled() -> bool:
        sampling.sample_cluster(Cluster.objects.with_freshness().get(), timezone.now())
        return GroupSample.objects.filter(group__name=group, topic_name=topic).exists()

    wait_until(is_sampled, what="a sample before the conflict")
    java.consumer(second, group, topic, expression="B")
    row = Group.objects.get(name=group)

    def found() -> Any:
        return [one for one in compared(row, Cluster.objects.all()).findings if one.kind == FindingKind.EXPRESSION]

    wait_until(found, what="the conflict of tags")
    for tag in ("A", "B"):
        java.send(sender, topic, body=f"after-{tag}-", tag=tag, count=COUNT)
    wait_until(lambda: has_consumed(group, 3 * COUNT), what="progress past all messages")

    consumed = {message["body"] for message in java.consumed(first, second) if message["body"].startswith("after-")}
    passed = compared(row, Cluster.objects.all()).skipped[0]
    assert (passed.method, passed.at_most) == (SkippedMethod.PROGRESS_PASSED, 2 * COUNT)
    assert 0 < 2 * COUNT - len(consumed) <= passed.at_most, "a bound of what was skipped"
    page = admin_client.get(f"/clusters/here/groups/{group}/subscriptions/").content.decode()
    assert f"At most {2 * COUNT} messages of {topic}" in page
    for each in (second, first, sender):
        java.stop(each)
