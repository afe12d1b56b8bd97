"""Rules act by themselves: once a dead letter, never more often than allowed, whatever dies or overlaps."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser

from mqadmin.actions import runner
from mqadmin.audit.models import AuditEntry
from mqadmin.deadletter_rules import applying
from mqadmin.deadletter_rules.models import DeadLetterRule, RaisedFailure, RuleCount, RuleTurn
from mqadmin.deadletter_rules.signals import FailureRaised, failure_raised
from mqadmin.deadletters.models import Failure
from mqadmin.people.models import ReadOnlyCluster
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import JobState
from tests.mqadmin.deadletter_rules.conftest import die, later
from tests.support.callers import caller

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_dead_letter_is_replayed_when_it_is_old_enough_for_whoever_made_the_rule(prod, now, make_rule, replays):
    make_rule()
    dead = die(prod, 0, now)
    assert applying.apply_rules(later(now, 9)) == 0
    assert applying.apply_rules(later(now, 10)) == 1
    assert replays.ids == [[dead.pk]]
    entry = AuditEntry.objects.get(action="start_replay")
    assert (entry.actor, entry.way, entry.via) == ("ann", "celery", "rule timeouts")
    assert entry.arguments["rate"] == 5
    assert applying.apply_rules(later(now, 11)) == 0
    rule = DeadLetterRule.objects.get()
    assert (rule.last_run, rule.last_words) == (entry.run, "")


def test_what_lay_there_before_the_rule_ran_is_left_alone(prod, now, make_rule, replays):
    die(prod, 0, now)
    make_rule()
    dead = die(prod, 1, now)
    applying.apply_rules(later(now, 10))
    assert replays.ids == [[dead.pk]]


def test_a_message_that_dies_again_is_replayed_no_more_often_than_allowed(prod, now, make_rule, replays):
    make_rule(times=2)
    for offset in range(4):
        died = later(now, offset * 20)
        die(prod, offset, died, properties={"UNIQ_KEY": "SAME"})
        applying.apply_rules(later(died, 10))
    assert len(replays.ids) == 2
    assert RuleCount.objects.get().count == 2
    assert "1 were replayed as often as the rule allows" in DeadLetterRule.objects.get().last_words


def test_a_worker_that_died_in_the_action_is_followed_by_one_that_finds_the_same_run(prod, now, make_rule, replays):
    make_rule()
    die(prod, 0, now)
    replays.dies = SystemExit()
    with pytest.raises(SystemExit):
        applying.apply_rules(later(now, 10))
    replays.dies = None
    assert RuleTurn.objects.count() == 1
    applying.apply_rules(later(now, 11))
    assert len(replays.ids) == 1
    assert RuleCount.objects.get().count == 1


def test_a_worker_that_died_before_the_action_leaves_its_turn_to_the_next(prod, now, make_rule, replays):
    rule = make_rule()
    dead = die(prod, 0, now)
    assert len(applying.look(rule, later(now, 10))) == 1
    assert replays.ids == []
    applying.apply_rules(later(now, 11))
    applying.apply_rules(later(now, 12))
    assert replays.ids == [[dead.pk]]


def test_of_two_workers_that_look_at_the_same_one_decides(prod, now, make_rule, replays):
    rule = make_rule()
    again = DeadLetterRule.objects.select_related("cluster").get()
    die(prod, 0, now)
    assert len(applying.look(rule, later(now, 10))) == 1
    assert applying.look(again, later(now, 10)) == []
    assert RuleCount.objects.get().count == 1


def test_the_next_replay_waits_for_the_one_before(prod, now, make_rule, replays):
    make_rule()
    job = ReplayJob.objects.create(
        cluster=prod,
        identity="x",
        group_name="billing",
        until_id=0,
        target="group",
        rate_per_s=5,
        stop_percent=5,
        created_at=now,
    )
    replays.number = job.pk
    for offset in range(2):
        die(prod, offset, later(now, offset))
        applying.apply_rules(later(now, 10 + offset))
    assert len(replays.ids) == 1
    assert f"waits for replay {job.pk} to end" in DeadLetterRule.objects.get().last_words
    ReplayJob.objects.update(state=JobState.DONE)
    applying.apply_rules(later(now, 12))
    assert len(replays.ids) == 2


@pytest.mark.parametrize("why", ["read-only", "away", "no rights"])
def test_what_may_pass_is_tried_again_without_being_counted_twice(
    prod: Any, now: Any, make_rule: Any, replays: Any, ann: AbstractUser, why: str
):
    make_rule()
    die(prod, 0, now)
    if why == "read-only":
        ReadOnlyCluster.objects.create(cluster=prod)
    elif why == "away":
        replays.go_away()
    else:
        type(ann)._default_manager.update(is_active=False)
    assert applying.apply_rules(later(now, 10)) == 0
    assert DeadLetterRule.objects.get().last_words
    applying.apply_rules(later(now, 11))
    assert AuditEntry.objects.filter(action="start_replay").count() == 1
    ReadOnlyCluster.objects.all().delete()
    type(ann)._default_manager.update(is_active=True)
    replays.error = None
    assert applying.apply_rules(later(now, 21)) == 1
    assert (len(replays.ids), RuleCount.objects.get().count) == (1, 1)


def test_a_paused_rule_drops_what_it_had_decided(prod, now, make_rule, replays, ann):
    rule = make_rule()
    die(prod, 0, now)
    applying.look(rule, later(now, 10))
    runner.run(caller(ann), "set_rule_running", "prod", {"rule": "timeouts", "running": "no"})
    applying.apply_rules(later(now, 20))
    assert replays.ids == []


def test_a_failure_is_archived(prod, now, make_rule):
    make_rule(does="archive")
    die(prod, 0, now)
    applying.apply_rules(later(now, 10))
    assert Failure.objects.get().archived_at is not None
    assert AuditEntry.objects.get(action="archive_failure").actor == "ann"


def test_a_failure_is_raised_once_and_counted_and_published(prod, now, make_rule):
    make_rule(does="raise", failure_class="Payment*", after_minutes=0)
    heard: list[FailureRaised] = []

    def hear(event: FailureRaised, **_: object) -> None:
        heard.append(event)

    failure_raised.connect(hear)
    try:
        for offset in range(2):
            die(prod, offset, later(now, offset))
            applying.apply_rules(later(now, offset))
        die(prod, 2, later(now, 2), properties={"UNIQ_KEY": "other"})
        applying.apply_rules(later(now, 2))
    finally:
        failure_raised.disconnect(hear)
    raised = RaisedFailure.objects.get()
    assert (raised.dead_count, raised.failure.failure_class) == (2, "PaymentTimeout")
    assert [(event.dead_count, event.is_new) for event in heard] == [(1, True), (1, False)]


def test_old_counts_are_forgotten(prod, now, make_rule, replays, settings):
    settings.MQADMIN_DEAD_LETTER_DAYS = 1
    make_rule()
    die(prod, 0, now)
    applying.apply_rules(later(now, 10))
    assert applying.forget_old_counts(later(now, 20)) == 0
    assert applying.forget_old_counts(later(now, 2 * 24 * 60)) == 1


def test_dead_letters_of_other_groups_are_passed_in_bounded_steps(prod, now, make_rule, replays, monkeypatch):
    monkeypatch.setattr(applying, "LOOKED_AT_MAX", 2)
    make_rule(group="mail")
    for offset in range(5):
        die(prod, offset, now)
    for step in range(3):
        applying.apply_rules(later(now, 10 + step))
    assert replays.ids == []
    assert DeadLetterRule.objects.get().reached_id == max(
        Failure.objects.get().dead_letters.values_list("pk", flat=True)
    )
