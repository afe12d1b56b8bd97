"""Whose a topic or a group is: said, changed, taken back, and refused where it would harm who follows the link."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.audit.models import Outcome
from mqadmin.clusters.models import Cluster
from mqadmin.ownership.describe import texts_of
from mqadmin.ownership.models import Described
from tests.support import console_rows
from tests.support.callers import caller

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster() -> Cluster:
    return console_rows.make_cluster("prod", now=timezone.now())


def run(ann: AbstractUser, action: str, **values: str) -> Result:
    result = runner.run(caller(ann), action, "prod", values)
    assert isinstance(result, Result)
    return result


def test_a_topic_and_a_group_of_one_name_have_texts_of_their_own_and_both_are_taken_back(
    cluster: Cluster, ann: AbstractUser
) -> None:
    run(ann, "describe_topic", topic="orders", owner="shop", runbook="https://wiki.example.org/o")
    run(ann, "describe_group", group="orders", owner="billing", description="Books orders.")
    assert texts_of(cluster, Described.TOPIC, "orders") == {
        "owner": "shop",
        "description": "",
        "runbook": "https://wiki.example.org/o",
    }
    changed = run(ann, "describe_group", group="orders", owner="crm")
    assert texts_of(cluster, Described.GROUP, "orders") == {
        "owner": "crm",
        "description": "Books orders.",
        "runbook": "",
    }
    assert changed.undo is not None
    run(ann, changed.undo.action, **changed.undo.arguments)
    assert texts_of(cluster, Described.GROUP, "orders")["owner"] == "billing"


@pytest.mark.parametrize("runbook", ["javascript:alert(1)", "ftp://x.example.org/", "wiki", "http://" + "x" * 600])
def test_a_runbook_is_an_address_of_the_web(cluster: Cluster, ann: AbstractUser, runbook: str) -> None:
    result = run(ann, "describe_topic", topic="orders", runbook=runbook)
    assert (result.outcome, result.refusal) == (Outcome.REFUSED, Refusal.ARGUMENTS)
    assert texts_of(cluster, Described.TOPIC, "orders")["runbook"] == ""


def test_an_empty_text_is_taken_away_and_one_that_is_not_said_stays(cluster: Cluster, ann: AbstractUser) -> None:
    run(
        ann,
        "describe_topic",
        topic="orders",
        owner="shop",
        description="Each step.",
        runbook="https://wiki.example.org",
    )
    changed = run(ann, "describe_topic", topic="orders", description="", runbook="")
    assert texts_of(cluster, Described.TOPIC, "orders") == {"owner": "shop", "description": "", "runbook": ""}
    assert changed.undo is not None
    run(ann, changed.undo.action, **changed.undo.arguments)
    assert texts_of(cluster, Described.TOPIC, "orders")["runbook"] == "https://wiki.example.org"
    assert run(ann, "describe_topic", topic="orders").items[0].state == "unchanged"
