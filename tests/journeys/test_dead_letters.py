"""Dead letters that Apache's Java consumer makes, on our broker and on Apache's, indexed by the console."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import pytest
from django.utils import timezone

from mqadmin.clusters import models
from mqadmin.deadletters import indexing, tasks
from mqadmin.deadletters.bodies import body_of
from mqadmin.deadletters.models import DeadLetter, DeadLetterQueue, Failure
from mqadmin.observing import polling_cycle
from mqadmin.people.roles import Role
from tests.journeys.acting import cluster, java  # noqa: F401 - fixtures
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _no_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is called by hand."""
    monkeypatch.setattr(tasks.index_dead_letters, "apply_async", lambda **_: None)


def groups_of(java, cluster) -> set[str]:
    return set(java.group_configs(cluster.broker))


def problems() -> list[str]:
    return list(DeadLetterQueue.objects.exclude(problem="").values_list("problem", flat=True))


def test_messages_that_a_java_consumer_fails_on_are_indexed_and_nothing_is_left_behind(java, cluster, fresh) -> None:
    topic, group, producer, consumer = fresh("failing"), fresh("failers"), fresh("sender"), fresh("failer")
    java.producer(producer)
    java.send(producer, topic, body="warm-up-")
    # A retry count of 0: the first failure is the last.
    java.consumer(consumer, group, topic, fail_until=99, max_reconsume_times=0)
    (sent,) = java.send(producer, topic, tag="paid", body="bad-")
    before = wait_until(lambda: found if group in (found := groups_of(java, cluster)) else None, what="the group")
    there = models.Cluster.objects.create(name="there", namesrv=cluster.namesrv)

    def indexed() -> bool:
        polling_cycle.poll_once(there, timezone.now())
        there.refresh_from_db()
        indexing.index_step(there)
        # A queue that is refused stays so: no reason to wait.
        return bool(problems()) or DeadLetter.objects.filter(message_id=sent["msg_id"]).exists()

    wait_until(indexed, what="the dead letter in the index")
    assert problems() == []
    dead = DeadLetter.objects.select_related("kept", "failure").get(message_id=sent["msg_id"])
    assert (dead.group_name, dead.origin_topic, dead.tag) == (group, topic, "paid")
    assert body_of(dead, Role.VIEWER).text.startswith("bad-")
    assert Failure.objects.get(pk=dead.failure_id).group_name == group
    # Reading it made no group, and committed nothing.
    assert groups_of(java, cluster) == before
    indexing.index_step(there)
    assert DeadLetter.objects.filter(message_id=sent["msg_id"]).count() == 1
    java.stop(consumer)
    java.stop(producer)
