from __future__ import annotations

import pytest
from django.utils import timezone

from mqadmin.action_runs.runs import Refusal
from mqadmin.actions.declaration import Undo
from mqadmin.clusters.models import Broker, Cluster
from tests.support import console_rows as seed


@pytest.fixture
def prod(db: None) -> Cluster:
    now = timezone.now()
    prod = seed.make_cluster("prod", now=now, namesrv="10.0.0.5:9876")
    seed.make_broker(prod, now=now)
    return prod


def test_other_name_servers_are_found_out_anew(prod, brokers, act) -> None:
    result = act("change_cluster", cluster="prod", namesrv=brokers.namesrv, note="moved")
    row = Cluster.objects.get()
    assert (row.namesrv, row.note, row.state, row.kind) == (brokers.namesrv, "moved", "new", "")
    assert not Broker.objects.exists()
    assert result.items[0].after is not None
    assert "2 brokers answer" in result.items[0].after["found"]
    assert result.undo == Undo("change_cluster", {"cluster": "prod", "namesrv": "10.0.0.5:9876", "note": ""})


def test_a_note_alone_leaves_what_is_known(prod, act) -> None:
    assert act("change_cluster", cluster="prod", namesrv=prod.namesrv, note="of the shop").outcome == "done"
    row = Cluster.objects.get()
    assert (row.note, row.state, Broker.objects.count()) == ("of the shop", prod.state, 1)
    assert act("change_cluster", cluster="prod", namesrv=prod.namesrv, note="of the shop").items[0].state == "unchanged"


def test_the_address_of_the_default_cluster_is_the_settings(db, settings, act) -> None:
    seed.make_cluster(settings.MQADMIN_DEFAULT_CLUSTER, now=timezone.now(), namesrv="10.0.0.5:9876")
    result = act("change_cluster", cluster=settings.MQADMIN_DEFAULT_CLUSTER, namesrv="10.0.0.6:9876")
    assert result.refusal == Refusal.RULE
    assert "MQADMIN_NAMESRV" in result.reason


def test_a_cluster_that_is_not_there_is_refused(db, act) -> None:
    assert act("change_cluster", cluster="prod", namesrv="10.0.0.6:9876").refusal == Refusal.RULE
