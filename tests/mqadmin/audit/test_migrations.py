"""Entries of an install that is older than the runs of actions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from mqadmin.audit.models import AuditEntry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def latest() -> Iterator[list[tuple[str, str]]]:
    """Whatever happens to a test, the next one finds the newest tables."""
    latest = MigrationExecutor(connection).loader.graph.leaf_nodes("mq_audit")
    yield latest
    MigrationExecutor(connection).migrate(latest)


@pytest.mark.slow
def test_entries_say_what_was_asked_for_and_what_takes_it_back(latest: list[tuple[str, str]]) -> None:
    executor = MigrationExecutor(connection)
    executor.migrate([("mq_audit", "0001_initial")])
    old = executor.loader.project_state([("mq_audit", "0001_initial")]).apps.get_model("mq_audit", "AuditEntry")
    told = {"actor": "ann", "action": "set_wanted_instances", "cluster": "local", "subject": "billing"}
    old.objects.create(**told, before={"wanted_instances": 2}, after={"wanted_instances": 4}, outcome="done")
    old.objects.create(**told, after={"wanted_instances": 9}, outcome="refused", reason="too many")
    MigrationExecutor(connection).migrate(latest)
    done, refused = AuditEntry.objects.order_by("pk")
    assert done.arguments == {"group": "billing", "wanted": 4}
    assert (done.before, done.after) == ({"wanted_instances": 2}, {"wanted_instances": 4})
    assert done.items == [{"item": "", "state": "done", "words": ""}]
    assert done.undo == {"action": "set_wanted_instances", "arguments": {"group": "billing", "wanted": 2}}
    assert (refused.arguments, refused.after, refused.items) == ({"group": "billing", "wanted": 9}, {}, [])
    assert done.run != refused.run
