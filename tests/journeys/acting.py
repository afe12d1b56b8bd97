"""Actions as an administrator runs them: looked at first, then carried out on what was seen.

Import the fixtures that a test needs; they stand on every cluster that the console works with, in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Result
from mqadmin.actions import registry
from mqadmin.actions.declaration import Action
from mqadmin.clusters import models
from mqadmin.people.caller import Person
from tests.journeys.conftest import Cluster
from tests.support.callers import caller
from tests.support.java_client import JavaClient

Act = Callable[..., Result]


def acting(person: Person, cluster: str) -> Act:
    """Returns a function of an action's name and arguments that previews it and runs it on the cluster."""

    def act(action: str, **values: Any) -> Result:
        declared = registry.find(action)
        where = cluster if isinstance(declared, Action) else ""
        seen = runner.preview(caller(person), action, where, values)
        result = runner.run(
            caller(person),
            action,
            where,
            values,
            fingerprint=seen.fingerprint,
            confirmation=str(values[declared.subject]),
        )
        assert isinstance(result, Result)
        return result

    return act


@pytest.fixture
def cluster(every_cluster: Cluster) -> Cluster:
    """Ours, Apache's, and the oldest of Apache's."""
    return every_cluster


@pytest.fixture
def java(java_process_5_4_0: JavaClient, cluster: Cluster) -> JavaClient:
    """Apache's newest client and tools, pointed at the cluster."""
    return java_process_5_4_0.on(cluster.namesrv)


@pytest.fixture
def act(cluster: Cluster, admin_user: AbstractUser) -> Act:
    """Runs an action on the cluster, which the console knows as "there"."""
    models.Cluster.objects.create(name="there", namesrv=cluster.namesrv)
    return acting(admin_user, "there")
