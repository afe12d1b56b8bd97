"""Roles for all clusters and for one, bounds of tokens, read-only clusters; what somebody may not see is not there."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.people import access
from mqadmin.people.access import Scope
from mqadmin.people.caller import Caller, Way
from mqadmin.people.models import ReadOnlyCluster
from mqadmin.people.roles import Role
from tests.support.callers import caller
from tests.support.people import make_person

pytestmark = pytest.mark.django_db

ADD = "mq_clusters.add_topic"


@pytest.fixture
def prod() -> Cluster:
    return Cluster.objects.create(name="prod", namesrv="127.0.0.1:1")


@pytest.fixture
def test() -> Cluster:
    return Cluster.objects.create(name="test", namesrv="127.0.0.1:2")


def names(person: Any, scope: Scope | None = None) -> list[str]:
    return sorted(access.visible_clusters(person, scope).values_list("name", flat=True))


def test_a_role_for_all_clusters_counts_everywhere(prod: Cluster, test: Cluster) -> None:
    ann = make_person("ann", Role.OPERATOR)
    assert access.may(ann, ADD, prod)
    assert access.may(ann, ADD, None)
    assert names(ann) == ["prod", "test"]
    assert access.role_on(ann, prod) is Role.OPERATOR


def test_a_role_for_one_cluster_ends_there(prod: Cluster, test: Cluster) -> None:
    bob = make_person("bob", Role.ADMIN, on=test)
    assert access.may(bob, ADD, test)
    assert not access.may(bob, ADD, prod)
    assert not access.may(bob, ADD, None)
    assert names(bob) == ["test"]
    assert (access.role_on(bob, test), access.role_on(bob, prod)) == (Role.ADMIN, None)


def test_the_higher_of_two_roles_counts(prod: Cluster, test: Cluster) -> None:
    cat = make_person("cat", Role.OPERATOR, on=test)
    cat.groups.add(*make_person("dan", Role.VIEWER).groups.all())
    assert (access.may(cat, ADD, test), access.may(cat, ADD, prod)) == (True, False)
    assert names(cat) == ["prod", "test"]


def test_without_a_role_nothing_is_there(prod: Cluster) -> None:
    assert names(make_person("eve")) == []
    assert names(AnonymousUser()) == []
    shut = make_person("shut", Role.ADMIN)
    shut.is_active = False
    assert names(shut) == []
    assert not access.may(shut, ADD, prod)


@pytest.mark.parametrize(
    ("scope", "on_prod", "on_test", "on_all"),
    [
        (Scope(), True, True, True),
        (Scope(role=Role.VIEWER), False, False, False),
        (Scope(clusters=frozenset({"test"})), False, True, False),
        (Scope(role=Role.OPERATOR, clusters=frozenset()), False, False, False),
    ],
)
def test_a_scope_only_takes_away(
    prod: Cluster, test: Cluster, scope: Scope, on_prod: bool, on_test: bool, on_all: bool
) -> None:
    ann = make_person("ann", Role.ADMIN)
    assert [access.may(ann, ADD, one, scope) for one in (prod, test, None)] == [on_prod, on_test, on_all]
    assert not access.may(make_person("viewer", Role.VIEWER), ADD, prod, scope)


def test_a_token_of_another_cluster_is_refused_and_audited(prod: Cluster, test: Cluster) -> None:
    scope = Scope(clusters=frozenset({"test"}))
    asking = Caller(person=make_person("ann", Role.ADMIN), way=Way.REST, via="ci", scope=scope)
    result = runner.run(asking, "create_topic", "prod", {"topic": "orders"})
    assert isinstance(result, Result)
    assert result.refusal == Refusal.PERMISSION
    entry = AuditEntry.objects.get()
    assert (entry.outcome, entry.via, entry.cluster) == ("refused", "ci", "prod")
    assert names(asking.person, scope) == ["test"]


def test_on_a_read_only_cluster_nobody_changes_anything(prod: Cluster) -> None:
    ann = make_person("ann", Role.ADMIN)
    ReadOnlyCluster.objects.create(cluster=prod)
    result = runner.run(caller(ann), "create_topic", "prod", {"topic": "orders"})
    assert isinstance(result, Result)
    assert (result.outcome, result.refusal) == ("refused", Refusal.READ_ONLY)
    lifted = runner.run(caller(ann), "set_read_only", "", {"cluster": "prod", "read_only": "no"})
    assert isinstance(lifted, Result)
    assert lifted.outcome == "done"
    again = runner.run(caller(ann), "create_topic", "prod", {"topic": "orders"})
    assert isinstance(again, Result)
    assert again.refusal is None


def logged_in(person: Any) -> Client:
    client = Client()
    client.force_login(person)
    return client


def test_the_pages_of_a_cluster_are_there_for_those_who_may_see_it(prod: Cluster, test: Cluster) -> None:
    client = logged_in(make_person("bob", Role.VIEWER, on=test))
    assert client.get("/clusters/test/topics/").status_code == 200
    for page in ("", "topics/", "groups/", "rebalances/", "create-topic/"):
        assert client.get(f"/clusters/prod/{page}").status_code == 404
    overview = client.get("/").content.decode()
    assert "/clusters/test/" in overview
    assert "/clusters/prod/" not in overview


def test_people_who_see_different_clusters_share_no_region(prod: Cluster, test: Cluster) -> None:
    everybody = logged_in(make_person("ann", Role.VIEWER))
    one = logged_in(make_person("bob", Role.VIEWER, on=test))
    region = {"HX-Request": "true"}
    assert "/clusters/prod/" in everybody.get("/", headers=region).content.decode()
    assert "/clusters/prod/" not in one.get("/", headers=region).content.decode()


def test_a_change_of_a_cluster_that_is_not_theirs_is_refused_and_audited(prod: Cluster, test: Cluster) -> None:
    client = logged_in(make_person("bob", Role.ADMIN, on=test))
    assert client.post("/clusters/prod/create-topic/", {"topic": "orders"}).status_code == 403
    assert AuditEntry.objects.get().outcome == "refused"
