from __future__ import annotations

import pytest
from django.utils import timezone

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster, Group, Topic
from tests.support import console_rows as seed
from tests.support.callers import caller
from tests.support.follower import follower_thread
from tests.support.scripted_broker import ScriptedBroker, empty_body
from tests.support.waiting import wait_until


def test_all_that_is_known_of_it_goes_and_the_audit_stays(db, act) -> None:
    now = timezone.now()
    for name in ("prod", "other"):
        cluster = seed.make_cluster(name, now=now)
        seed.make_topic(cluster, "orders", now=now)
        seed.make_member(seed.make_group(cluster, "billing", now=now), "10.0.0.1@7", now=now)
    act("remove_cluster", cluster="prod")
    assert [*Cluster.objects.values_list("name", flat=True)] == ["other"]
    assert (Topic.objects.count(), Group.objects.count()) == (1, 1)
    entry = AuditEntry.objects.get()
    assert (entry.subject, entry.before["topic_count"], entry.after) == ("prod", 1, {})


def test_its_name_must_be_typed(db, ann) -> None:
    seed.make_cluster("prod", now=timezone.now())
    result = runner.run(caller(ann), "remove_cluster", "", {"cluster": "prod"}, confirmation="pro")
    assert isinstance(result, Result)
    assert result.refusal == Refusal.CONFIRMATION
    assert Cluster.objects.exists()


def test_the_default_cluster_would_come_back_and_is_refused(db, settings, act) -> None:
    seed.make_cluster(settings.MQADMIN_DEFAULT_CLUSTER, now=timezone.now())
    assert act("remove_cluster", cluster=settings.MQADMIN_DEFAULT_CLUSTER).refusal == Refusal.RULE


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_one_that_is_followed_is_removed_and_the_others_are_followed_on(act) -> None:
    with ScriptedBroker(is_watched=True) as first, ScriptedBroker(is_watched=True) as second:
        for broker in (first, second):
            broker.tell(empty_body())
        Cluster.objects.create(name="prod", namesrv=first.address)
        Cluster.objects.create(name="other", namesrv=second.address)
        with follower_thread(stopped_within_s=120):
            wait_until(lambda: Cluster.objects.filter(state="reachable").count() == 2)
            assert act("remove_cluster", cluster="prod").outcome == "done"
            wait_until(lambda: first.connection_count == 0, what="nobody watches the removed cluster's broker")
            assert Cluster.objects.get().state == "reachable"
            assert second.connection_count > 0
