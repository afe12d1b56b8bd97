"""A cluster is found out, added, changed and removed by actions: our broker and Apache's."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AbstractUser

from mqadmin.action_runs import runner
from mqadmin.clusters import models
from tests.journeys.acting import acting
from tests.journeys.conftest import Cluster
from tests.support.callers import caller
from tests.support.our_broker import OurBroker

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]


def test_a_cluster_is_found_out_added_changed_and_removed(every_cluster: Cluster, admin_user: AbstractUser) -> None:
    act = acting(admin_user, "")
    values = {"cluster": "there", "namesrv": every_cluster.namesrv}
    seen = runner.preview(caller(admin_user), "add_cluster", "", values)
    kind = (
        "this project's broker" if isinstance(every_cluster, OurBroker) else f"Apache RocketMQ {every_cluster.version}"
    )
    assert seen.changes[0].after["found"] == f"{kind}; 1 broker answers"
    # A busy machine may take its time.
    assert [words for words in seen.warnings if "answers slowly" not in words] == []
    assert act("add_cluster", **values).outcome == "done"

    changed = act("change_cluster", cluster="there", namesrv=f"{every_cluster.namesrv};127.0.0.1:1", note="of the shop")
    assert models.Cluster.objects.get(name="there").note == "of the shop"
    assert changed.undo is not None
    assert act(changed.undo.action, **changed.undo.arguments).outcome == "done"
    assert act("remove_cluster", cluster="there").outcome == "done"
    assert not models.Cluster.objects.exists()
