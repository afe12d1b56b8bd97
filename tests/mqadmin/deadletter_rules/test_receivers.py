"""Rules act on what they passed over before its reason came, once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from consumer.models import MessageFailure
from mqadmin.clusters.models import Cluster
from mqadmin.deadletter_rules import applying
from mqadmin.deadletter_rules.models import DeadLetterRule, RaisedFailure
from mqadmin.deadletters.late_reasons import join_late_reasons
from mqadmin.deadletters.models import DeadLetter, Failure
from tests.mqadmin.deadletter_rules.conftest import Replays, die, later

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _ours(prod: Cluster, settings: Any) -> None:
    settings.MQADMIN_NAMESRV = prod.namesrv


def say_why(dead: DeadLetter, now: datetime, exception: str = "PaymentTimeout") -> None:
    """Its reason comes, and is joined with it."""
    MessageFailure.objects.create(
        message_id=dead.message_id,
        attempt=1,
        failed_at=now,
        group=dead.group_name,
        topic=dead.origin_topic,
        exception=exception,
        text="no answer",
        member="m",
        listener="l",
    )
    assert join_late_reasons(now) == 1


def die_silently(prod: Cluster, number: int, now: datetime) -> DeadLetter:
    return die(prod, number, now, properties={"UNIQ_KEY": f"UNIQ{number}"})


@pytest.mark.parametrize("which", ["failure", "pattern"])
def test_a_dead_letter_that_was_passed_over_is_replayed_once_when_its_reason_comes(
    prod: Cluster, now: datetime, make_rule: Any, replays: Replays, which: str
) -> None:
    early = die_silently(prod, 1, now)
    say_why(early, now)
    failure = DeadLetter.objects.get(pk=early.pk).failure_id
    make_rule(after_minutes=0, **({"failure": failure} if which == "failure" else {"failure_class": "Payment*"}))
    dead, other = die_silently(prod, 2, now), die_silently(prod, 3, now)
    assert applying.apply_rules(later(now, 1)) == 0
    assert DeadLetterRule.objects.get().reached_id == other.pk
    say_why(dead, now)
    assert applying.apply_rules(later(now, 2)) == 1
    assert replays.ids == [[dead.pk]]
    assert applying.apply_rules(later(now, 3)) == 0
    assert DeadLetterRule.objects.get().gaps == []


def test_what_a_rule_has_acted_on_before_its_reason_came_is_not_counted_again(
    prod: Cluster, now: datetime, make_rule: Any
) -> None:
    make_rule(does="raise", after_minutes=0)
    dead = die_silently(prod, 1, now)
    die_silently(prod, 2, now)
    applying.apply_rules(later(now, 1))
    say_why(dead, now)
    applying.apply_rules(later(now, 2))
    assert [raised.dead_count for raised in RaisedFailure.objects.all()] == [2]


def test_what_lay_there_before_the_rule_ran_is_left_alone_though_its_reason_comes_later(
    prod: Cluster, now: datetime, make_rule: Any, replays: Replays
) -> None:
    dead = die_silently(prod, 1, now)
    make_rule(after_minutes=0, failure_class="Payment*")
    say_why(dead, now)
    assert applying.apply_rules(later(now, 1)) == 0
    assert replays.ids == []


def test_a_look_that_is_under_way_does_not_forget_it(
    prod: Cluster, now: datetime, make_rule: Any, replays: Replays
) -> None:
    make_rule(after_minutes=0, failure_class="Payment*")
    dead = die_silently(prod, 1, now)
    applying.apply_rules(later(now, 1))
    behind = DeadLetterRule.objects.select_related("cluster").get()
    die(prod, 2, now)
    say_why(dead, now)
    assert applying.look(behind, later(now, 2)) == []
    applying.apply_rules(later(now, 3))
    assert [len(ids) for ids in replays.ids] == [2]


def test_a_rule_goes_on_with_its_failure_when_that_gets_its_reason(
    prod: Cluster, now: datetime, make_rule: Any, replays: Replays
) -> None:
    first = die_silently(prod, 1, now)
    number = first.failure_id
    make_rule(after_minutes=0, failure=number)
    say_why(first, now)
    failure = Failure.objects.get(pk=number)
    assert (failure.failure_class, DeadLetterRule.objects.get().identity) == ("PaymentTimeout", failure.identity)
    second = die_silently(prod, 2, now)
    assert applying.apply_rules(later(now, 1)) == 0
    say_why(second, now)
    applying.apply_rules(later(now, 2))
    assert replays.ids == [[second.pk]]
