"""Rows of an earlier version keep what they say."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE, AFTER = [("mq_consumer", "0001_initial")], [("mq_consumer", "0002_pending_and_desired_state")]


@pytest.mark.slow
def test_leases_keep_their_state_and_what_is_asked_of_them_there_and_back() -> None:
    old = _migrate(BEFORE)
    try:
        group = old.get_model("mq_consumer", "HostedGroup").objects.create(
            group="billing", wanted_instances=2, declared_instances=2
        )
        leases = old.get_model("mq_consumer", "InstanceLease").objects
        leases.create(group=group, state="wanted", wanted_word="run")
        leases.create(group=group, state="running", wanted_word="stop")
        new = _migrate(AFTER).get_model("mq_consumer", "InstanceLease").objects
        assert sorted(new.values_list("state", "desired_state")) == [("pending", "run"), ("running", "stop")]
        old = _migrate(BEFORE)
        rows = old.get_model("mq_consumer", "InstanceLease").objects.values_list("state", "wanted_word")
        assert sorted(rows) == [("running", "stop"), ("wanted", "run")]
    finally:
        _migrate(MigrationExecutor(connection).loader.graph.leaf_nodes("mq_consumer"))


def _migrate(targets: list[tuple[str, str]]):
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps
