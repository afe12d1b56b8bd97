"""`manage.py config`: exported, planned and applied against brokers over real sockets, audited under an account."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import AbstractUser
from django.core.management import CommandError, call_command
from django.utils import timezone

from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.ownership.models import Ownership
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from tests.support import console_rows
from tests.support.group_brokers import GroupBrokers
from tests.support.topic_brokers import TopicBrokers

pytestmark = pytest.mark.django_db(transaction=True)

TOPIC = """\
topics:
  orders:
    owner: shop
    read_queues: 8
    write_queues: 8
    perm: 6
"""


@pytest.fixture
def topic_brokers() -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a", "broker-b") as brokers:
        yield brokers


@pytest.fixture
def group_brokers() -> Iterator[GroupBrokers]:
    with GroupBrokers("broker-a", "broker-b") as brokers:
        yield brokers


def cluster_of(namesrv: str, *brokers: str) -> Cluster:
    now = timezone.now()
    cluster = console_rows.make_cluster("prod", now=now, namesrv=namesrv)
    for name in brokers:
        console_rows.make_broker(cluster, name, now=now)
    return cluster


def config(verb: str, *arguments: str) -> tuple[int, str]:
    """Returns exit code and output."""
    out = io.StringIO()
    try:
        call_command("config", verb, "prod", *arguments, "--as", "ann", stdout=out, stderr=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    return 0, out.getvalue()


def file(folder: Path, text: str) -> str:
    path = folder / "mq.yaml"
    path.write_text(text)
    return str(path)


def test_a_topic_is_planned_applied_and_then_does_not_differ(
    ann: AbstractUser, topic_brokers: TopicBrokers, tmp_path: Path
) -> None:
    cluster_of(topic_brokers.namesrv, "broker-a", "broker-b")
    topic_brokers.brokers["broker-a"].topics["orders"] = TopicConfig(
        topic_name="orders", read_queue_nums=4, write_queue_nums=8, perm=6
    )
    path = file(tmp_path, TOPIC)
    code, said = config("plan", path)
    assert code == 2
    assert "change topic orders on broker-a: read_queues 4 → 8\n" in said
    assert "create topic orders on broker-b: read_queues 8, write_queues 8, perm 6" in said
    assert "change topic orders: owner '' → 'shop'" in said
    assert not Ownership.objects.exists()
    assert AuditEntry.objects.count() == 0, "looking is not audited"

    assert config("apply", path)[0] == 0
    for broker in topic_brokers.brokers.values():
        assert broker.topics["orders"].read_queue_nums == 8
    assert Ownership.objects.get().owner == "shop"
    entries = AuditEntry.objects.order_by("pk").values_list("actor", "action", "outcome")
    assert list(entries) == [("ann", "create_topic", "done"), ("ann", "describe_topic", "done")]
    assert config("plan", path) == (0, "nothing differs\n")
    assert config("apply", path) == (0, "nothing differs\n")


def test_what_is_exported_does_not_differ(ann: AbstractUser, group_brokers: GroupBrokers, tmp_path: Path) -> None:
    cluster = cluster_of(group_brokers.namesrv, "broker-a", "broker-b")
    for broker in group_brokers.brokers.values():
        broker.groups["billing"] = SubscriptionGroupConfig(group_name="billing", retry_max_times=3)
    group_brokers.brokers["broker-a"].groups["mailing"] = SubscriptionGroupConfig(group_name="mailing")
    group_brokers.brokers["broker-b"].groups["mailing"] = SubscriptionGroupConfig(
        group_name="mailing", retry_max_times=9
    )
    now = timezone.now()
    for name in ("billing", "mailing"):
        console_rows.make_group(cluster, name, now=now)
    Ownership.objects.create(cluster=cluster, kind="group", name="mailing", owner="crm")
    out, problems = io.StringIO(), io.StringIO()
    call_command("config", "export", "prod", "--as", "ann", stdout=out, stderr=problems)
    assert "retry_times_max: 3" in out.getvalue()
    assert "mailing:\n    owner: crm\n" in out.getvalue()
    assert "group mailing: its brokers differ" in problems.getvalue()
    assert config("plan", file(tmp_path, out.getvalue())) == (0, "nothing differs\n")


def test_an_argument_that_an_action_refuses_names_line_and_key_and_nothing_is_changed(
    ann: AbstractUser, topic_brokers: TopicBrokers, tmp_path: Path
) -> None:
    cluster_of(topic_brokers.namesrv, "broker-a", "broker-b")
    path = file(tmp_path, TOPIC + "  later:\n    owner: shop\n    runbook: javascript:alert(1)\n")
    with pytest.raises(CommandError, match="line 9: topic later: runbook: "):
        config("apply", path)
    assert all(not broker.topics for broker in topic_brokers.brokers.values())
    assert AuditEntry.objects.count() == 0


def test_a_broker_that_refuses_is_said_and_the_rest_is_done(
    ann: AbstractUser, topic_brokers: TopicBrokers, tmp_path: Path
) -> None:
    cluster_of(topic_brokers.namesrv, "broker-a", "broker-b")
    topic_brokers.brokers["broker-b"].refusal = "the disk is full"
    with pytest.raises(CommandError, match="1 of 2 were not done"):
        config("apply", file(tmp_path, TOPIC))
    assert "orders" in topic_brokers.brokers["broker-a"].topics
    assert Ownership.objects.get().owner == "shop"


def test_an_account_without_the_right_and_unknown_names_are_refused(
    topic_brokers: TopicBrokers, django_user_model: type[AbstractUser], tmp_path: Path
) -> None:
    cluster_of(topic_brokers.namesrv, "broker-a", "broker-b")
    path = file(tmp_path, TOPIC)
    with pytest.raises(CommandError, match="there is no active account 'ann'"):
        config("plan", path)
    django_user_model.objects.create_user("ann")
    with pytest.raises(CommandError, match="line 2: topic orders: Your account lacks the right"):
        config("plan", path)
    with pytest.raises(CommandError, match="there is no cluster 'x'; known are: prod"):
        call_command("config", "plan", "x", path)
    with pytest.raises(CommandError, match="No such file"):
        config("plan", str(tmp_path / "missing.yaml"))
