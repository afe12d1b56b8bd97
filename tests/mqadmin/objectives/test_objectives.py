"""How much lag is allowed: who says so, what wins, and what held when."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from consumer.models import HostedGroup
from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.clusters.models import Cluster, Group
from mqadmin.objectives import keeping
from mqadmin.objectives.models import Objective
from mqadmin.objectives.selectors import objectives_of
from mqadmin.objectives.tasks import keep_declared
from mqadmin.objectives.values import Allowed, Objectives
from tests.support import console_rows
from tests.support.callers import caller

NOW = timezone.now()
SAID = Objectives.of(
    [
        Allowed(120, None, "billing-*"),
        Allowed(90, None, "billing-e*"),
        Allowed(10, 500, "billing-eu"),
        Allowed(300, None, "*"),
        Allowed(20, None, "orders", is_declared=True),
        Allowed(30, None, "billing-us", is_declared=True),
    ]
)


@pytest.mark.parametrize(
    ("group", "allowed"),
    [
        ("billing-eu", Allowed(10, 500, "billing-eu")),
        ("billing-es", Allowed(90, None, "billing-e*")),
        ("billing-us", Allowed(120, None, "billing-*")),
        ("orders", Allowed(20, None, "orders", is_declared=True)),
        ("mailing", Allowed(300, None, "*")),
    ],
)
def test_strongest_word_holds(group: str, allowed: Allowed) -> None:
    assert SAID.of_group(group) == allowed


def test_a_minute_is_allowed_where_nobody_says_anything() -> None:
    assert Objectives.of([]).of_group("billing") == Allowed(60, None, "")


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="local", namesrv="127.0.0.1:9876", kind="ours", state="reachable")


def test_what_held_then_stays_known(cluster: Cluster) -> None:
    keeping.keep(cluster, "billing", 10, None, NOW - timedelta(hours=2))
    keeping.keep(cluster, "billing", 30, 5, NOW - timedelta(hours=1))
    keeping.keep(cluster, "billing", None, None, NOW)
    held = [objectives_of(cluster, NOW - timedelta(minutes=minutes)).of_group("billing") for minutes in (150, 90, 30)]
    assert [(one.lag_s, one.lag) for one in held] == [(60, None), (10, None), (30, 5)]
    assert objectives_of(cluster).of_group("billing").lag_s == 60


def test_same_word_again_is_no_change_and_a_change_has_all_groups_judged_anew(cluster: Cluster) -> None:
    group = Group.objects.create(cluster=cluster, name="billing", seen_at=NOW)
    assert keeping.keep(cluster, "bill*", 10, None, NOW)
    group.refresh_from_db()
    assert group.due_at == NOW
    assert not keeping.keep(cluster, "bill*", 10, None, NOW)
    assert Objective.objects.count() == 1


def test_what_the_listeners_code_says_is_kept_as_long_as_it_says_so(cluster: Cluster, settings: Any) -> None:
    settings.MQADMIN_NAMESRV = cluster.namesrv
    row = HostedGroup.objects.create(group="billing", wanted_instances=1, declared_instances=1, lag_objective_s=15)
    keep_declared()
    assert objectives_of(cluster).of_group("billing") == Allowed(15, None, "billing", is_declared=True)
    row.lag_objective_s = None
    row.save()
    keep_declared()
    assert objectives_of(cluster).of_group("billing").lag_s == 60
    assert Objective.objects.count() == 1, "the past stays"


@pytest.mark.django_db(transaction=True)
def test_objective_is_set_taken_back_and_refused_without_seconds(ann: AbstractUser) -> None:
    cluster = console_rows.make_cluster("prod", now=NOW)

    def run(**values: Any) -> Result:
        result = runner.run(caller(ann), "set_objective", "prod", {"group": "billing-*", **values})
        assert isinstance(result, Result)
        return result

    done = run(lag_s=5)
    assert objectives_of(cluster).of_group("billing-eu").lag_s == 5
    assert run(lag_s=5).items[0].state == "unchanged"
    assert run(lag=5).refusal == Refusal.ARGUMENTS
    assert done.undo is not None
    runner.run(caller(ann), done.undo.action, "prod", done.undo.arguments)
    assert objectives_of(cluster).of_group("billing-eu").lag_s == 60
