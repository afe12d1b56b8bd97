"""Failures are put together by one of their fields; what changed when one began is found around that time."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import AbstractUser

from mqadmin.action_runs import runner
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.beginning import beginning_of
from mqadmin.deadletters.grouping import GROUPINGS, grouped, of_one_group
from mqadmin.deadletters.models import Failure
from mqadmin.deadletters.selectors import FailureFilter, failures
from mqadmin.rebalances.retention import KEPT_FOR
from remoting.wire.properties import Property
from tests.support import console_rows as seed
from tests.support.callers import caller
from tests.support.dead_letter_brokers import dead_message

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _dead(prod: Cluster, now: datetime) -> None:
    paid = [dead_message(offset) for offset in range(3)]
    refunded = [dead_message(offset, properties={Property.TAGS: "refunded"}, body=b"text") for offset in range(3, 4)]
    seed.make_dead_letters(prod, "billing", [*paid, *refunded], now=now)
    seed.make_dead_letters(prod, "mail", [dead_message(0, topic="%DLQ%mail")], now=now)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("group", [("billing", 4, 2), ("mail", 1, 1)]),
        ("topic", [("orders", 5, 3)]),
        ("tag", [("paid", 4, 2), ("refunded", 1, 1)]),
        ("attempts", [("16", 5, 3)]),
        ("class", [("", 5, 3)]),
        ("shape", [("JSON object: id number", 4, 2), ("text", 1, 1)]),
    ],
)
def test_failures_are_put_together_by_a_field(prod: Cluster, by: str, expected: list[tuple[str, int, int]]) -> None:
    found = grouped(prod, FailureFilter(), by)
    assert [(one.value, one.dead_count, one.failure_count) for one in found] == expected
    assert sum(one.share for one in found) == pytest.approx(1)


@pytest.mark.parametrize("by", GROUPINGS)
def test_each_group_has_its_failures(prod: Cluster, by: str) -> None:
    for one in grouped(prod, FailureFilter(), by):
        rows = of_one_group(failures(prod, FailureFilter()), by, one.value).after(None, 50)
        assert len(rows) == one.failure_count
    assert of_one_group(failures(prod, FailureFilter()), "attempts", "x").after(None, 50) == []


def test_only_what_is_wanted_is_put_together(prod: Cluster) -> None:
    assert [one.value for one in grouped(prod, FailureFilter(group="mail"), "tag")] == ["paid"]
    Failure.objects.filter(group_name="mail").update(owner="post")
    assert [one.dead_count for one in grouped(prod, FailureFilter(owner="post"), "group")] == [1]


def test_what_changed_when_it_began(prod: Cluster, now: datetime, ann: AbstractUser) -> None:
    failure = Failure.objects.filter(group_name="billing").first()
    assert failure is not None
    group = seed.make_group(prod, "billing", now=now)
    for minutes in (-16, -10, 4, 6):
        at = now + timedelta(minutes=minutes)
        seed.make_event(group, "joined", at=at, client_id=f"member{minutes}")
    run = runner.run(caller(ann), "describe_group", "prod", {"group": "billing", "owner": "x"})
    runner.run(caller(ann), "describe_group", "prod", {"group": "other", "owner": "x"})
    found = beginning_of(prod, failure, now, now, reads_audit=True)
    assert [event.client_id for event in found.rebalances] == ["member-10", "member4"]
    assert [(entry.run, entry.subject) for entry in found.actions] == [(run.run_id, "billing")]
    assert found.are_rebalances_kept
    assert beginning_of(prod, failure, now, now, reads_audit=False).actions == ()
    later = now + KEPT_FOR
    assert not beginning_of(prod, failure, now, later, reads_audit=True).are_rebalances_kept
