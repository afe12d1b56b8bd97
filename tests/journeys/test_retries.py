"""Messages that a Java consumer fails on, seen on their way through the retries, on our broker and on Apache's."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from mqadmin.clusters import models
from mqadmin.observing import polling_cycle
from mqadmin.retries import indexing
from mqadmin.retries.models import DelayQueue, FailedAttempt
from mqadmin.retries.standing import Fate, fates, standing_of
from tests.journeys.acting import cluster, java  # noqa: F401 - fixtures
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]

# A group that another test deletes. Apache's broker makes it anew when a pull that it held for it ends.
DELETED = re.compile(r"losing-\d+")


def groups_of(java, cluster) -> set[str]:
    names = java.group_configs(cluster.broker)
    return {name for name in names if not DELETED.fullmatch(name)}


def test_a_failed_attempt_is_seen_with_its_next_time_and_what_became_of_it(java, cluster, fresh) -> None:
    topic, group, producer, consumer = fresh("failing"), fresh("failers"), fresh("sender"), fresh("failer")
    java.producer(producer)
    java.send(producer, topic, body="warm-up-")
    # It fails once, and asks for longer than a busy machine needs to look at what waits.
    later = {"do": "later", "context": {"delayLevelWhenNextConsume": 4}}
    java.consumer(consumer, group, topic, outcomes={"bad-0": [later, "ok"]})
    (sent,) = java.send(producer, topic, tag="paid", keys="order-1", body="bad-")
    groups = wait_until(lambda: found if group in (found := groups_of(java, cluster)) else None, what="the group")
    there = models.Cluster.objects.create(name="there", namesrv=cluster.namesrv)
    polling_cycle.poll_once(there, timezone.now())
    there.refresh_from_db()

    def seen() -> FailedAttempt | None:
        indexing.index_step(there)
        return FailedAttempt.objects.filter(message_id=sent["msg_id"]).first()

    row = wait_until(seen, what="the failed attempt")
    assert list(DelayQueue.objects.exclude(problem="").values_list("problem", flat=True)) == []
    assert (row.group_name, row.origin_topic, row.tag, row.attempt_count) == (group, topic, "paid", 1)
    assert row.keys.split() == ["order-10"]
    assert row.due_at is not None
    assert timedelta(seconds=29.9) < row.due_at - row.failed_at < timedelta(seconds=30.1)
    standing = standing_of(there, group, [])
    assert standing.failures == {}
    assert fates([row], standing, row.failed_at) == {row.pk: Fate.WAITING}
    # Reading it made no group, and committed nothing.
    assert groups_of(java, cluster) == groups
    java.wait_consumed(3, consumer)

    def fate() -> Fate:
        indexing.index_step(there)
        return fates([row], standing_of(there, group, []), timezone.now())[row.pk]

    wait_until(lambda: fate() == Fate.PAST, what="the group past the retry")
    assert FailedAttempt.objects.filter(message_id=sent["msg_id"]).count() == 1
    java.stop(consumer)
    java.stop(producer)
