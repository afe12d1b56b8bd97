"""What pages ask brokers while they open: producers, settings; of ours, of Apache's, and of its oldest."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import pytest
from django.utils import timezone

from mqadmin.brokers.settings import settings_of
from mqadmin.clusters import models
from mqadmin.groups.settings import default_values
from mqadmin.groups.settings import settings_on_brokers as group_settings
from mqadmin.producers import asking
from mqadmin.producers.asking import producers_of
from mqadmin.topics.settings import settings_on_brokers as topic_settings
from tests.journeys.acting import acting, cluster, java  # noqa: F401 - fixtures
from tests.journeys.conftest import Cluster
from tests.support.patience import ANSWER_WITHIN_S
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]

BROKER = "broker-a"
# Of the test's own configuration: Apache's brokers tell names of their file that they do not know, too.
NOT_OF_4 = {
    *("recallMessageEnable", "timerFlushIntervalMs"),
    *("timerGetMessageThreadNum", "timerPutMessageThreadNum"),
}


@pytest.fixture
def there(cluster: Cluster) -> models.Cluster:
    """The console's row of the cluster, with its broker."""
    kind = models.ClusterKind.OURS if cluster.name == "ours" else models.ClusterKind.APACHE
    row = models.Cluster.objects.create(name="there", namesrv=cluster.namesrv, kind=kind)
    models.Broker.objects.create(cluster=row, name=BROKER, address=cluster.broker)
    return row


def test_a_producer_is_shown_under_its_group_and_among_all(java, cluster, there, fresh, monkeypatch) -> None:
    monkeypatch.setattr(asking, "ASK_TIMEOUT_S", ANSWER_WITHIN_S)
    topic, group = fresh("asked"), fresh("senders")
    row = models.Topic.objects.create(cluster=there, name=topic, seen_at=timezone.now())
    java.producer("p", group)
    java.send("p", topic)
    now = timezone.now()
    (one,) = wait_until(lambda: producers_of(there, row, group, now).producers, what="the producer's heartbeat")
    assert (one.group, one.language, one.version_name, one.brokers) == (group, "JAVA", "5.4.0", (BROKER,))
    assert one.address.startswith("127.0.0.1:")
    everyone = producers_of(there, row, "", now)
    assert not everyone.failures
    (found,) = [each for each in everyone.producers if each.group == group]
    assert (found.client_id, found.address) == (one.client_id, one.address)
    assert found.heartbeat_at is not None
    java.stop("p")


def test_settings_of_a_group_and_a_topic_are_what_was_set(there, admin_user, fresh) -> None:
    act, group, topic = acting(admin_user, "there"), fresh("asked"), fresh("asked")
    act("create_group", group=group, retry_times_max=5, broadcasting=False)
    found = group_settings(there, group).having
    assert found[BROKER] == {**default_values(), "retry_times_max": 5, "broadcasting": False}
    act("create_topic", topic=topic, read_queues=3, write_queues=2)
    assert topic_settings(there, topic).having == {BROKER: {"read_queues": 3, "write_queues": 2, "perm": 6}}
    assert group_settings(there, fresh("nobody")).settings == {BROKER: {}}


def test_a_brokers_settings_have_the_defaults_of_its_version(there) -> None:
    found = settings_of(there, there.brokers.get())
    assert found.defaults is not None
    by_name = {one.name: one for one in found.settings}
    assert by_name["brokerPermission"].default == "6"
    assert by_name["brokerName"].is_own
    without = {
        one.name for one in found.settings if one.default is None and not one.is_own and not one.is_by_processors
    }
    assert without <= NOT_OF_4
