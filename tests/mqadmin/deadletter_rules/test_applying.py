"""Rules act by themselves: once a dead letter, never more often than allowed, whatever dies or overlaps."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import connection, connections, transaction

from mqadmin.action_runs import runner
from mqadmin.actions.declaration import ActionRefused
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.deadletter_rules import applying
from mqadmin.deadletter_rules.gaps import LOOKED_BACK_FOR
from mqadmin.deadletter_rules.models import DeadLetterRule, RaisedFailure, RuleCount, RuleTurn
from mqadmin.deadletter_rules.signals import FailureRaised, failure_raised
from mqadmin.deadletters.indexing import write
from mqadmin.deadletters.models import DeadLetter, DeadLetterQueue, Failure
from mqadmin.observing.gateway import QueueReading
from mqadmin.people.models import ReadOnlyCluster
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import JobState
from remoting.wire.properties import Property
from tests.mqadmin.deadletter_rules.conftest import die, later
from tests.support.callers import caller
from tests.support.dead_letter_brokers import dead_message

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


def test_a_turn_that_is_tried_again_waits_for_the_hours_of_its_rule(prod, now, make_rule, replays):
    rule = make_rule()
    dead = die(prod, 0, now)
    assert len(applying.look(rule, later(now, 10))) == 1
    hour = later(now, 11).astimezone(ZoneInfo(settings.MQADMIN_TIME_ZONE)).hour
    DeadLetterRule.objects.update(from_hour=(hour + 2) % 24, to_hour=(hour + 3) % 24)
    assert applying.apply_rules(later(now, 11)) == 0
    assert (replays.ids, DeadLetterRule.objects.get().last_words) == ([], "waits for its hours")
    assert applying.apply_rules(later(now, 11 + 120)) == 1
    assert replays.ids == [[dead.pk]]


def test_a_replay_that_was_refused_is_not_counted(prod, now, make_rule, replays):
    make_rule()
    die(prod, 0, now)
    replays.error = ActionRefused("it may not be")
    assert applying.apply_rules(later(now, 10)) == 1
    assert (RuleTurn.objects.count(), RuleCount.objects.get().count) == (0, 0)


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


def test_a_dead_letter_that_shows_below_the_place_reached_is_acted_on(prod, now, make_rule, replays):
    make_rule()
    shown = [die_as(prod, offset, now, pk=1_000_000 + 5 * offset) for offset in range(2)]
    applying.apply_rules(later(now, 10))
    # Written by a transaction that took its number before, and ended after the look.
    late = die_as(prod, 2, later(now, 5), pk=1_000_002)
    applying.apply_rules(later(now, 11))
    assert replays.ids == [shown]
    applying.apply_rules(later(now, 15))
    applying.apply_rules(later(now, 16))
    assert replays.ids == [shown, [late]]


def test_numbers_that_nobody_used_are_not_looked_at_for_ever(prod, now, make_rule, replays):
    make_rule()
    die_as(prod, 0, now, pk=1_000_000)
    applying.apply_rules(later(now, 10))
    assert len(DeadLetterRule.objects.get().gaps) == 1
    applying.apply_rules(later(now, 10) + LOOKED_BACK_FOR)
    assert DeadLetterRule.objects.get().gaps == []
    assert len(replays.ids) == 1


def test_a_gap_that_ends_beside_one_that_is_too_young_leaves_what_shows_before_that_one(prod, now, make_rule, replays):
    make_rule()
    shown = die_as(prod, 0, now, pk=1_000_000)
    applying.apply_rules(later(now, 10))
    over = later(now, 10) + LOOKED_BACK_FOR
    young = die_as(prod, 1, over, pk=1_000_005)
    applying.apply_rules(over)
    rule = DeadLetterRule.objects.get()
    assert (rule.reached_id, rule.gaps) == (shown, [])
    # Written by a transaction that took its number before, and ended after the look.
    late = die_as(prod, 2, over, pk=1_000_002)
    applying.apply_rules(later(over, 10))
    assert replays.ids == [[shown], [late, young]]


def test_of_two_workers_that_look_at_a_late_one_one_decides(prod, now, make_rule, replays):
    make_rule()
    die_as(prod, 0, now, pk=1_000_000)
    applying.apply_rules(later(now, 10))
    die_as(prod, 1, now, pk=999_999)
    rule, again = (DeadLetterRule.objects.select_related("cluster").get() for _ in range(2))
    assert len(applying.look(rule, later(now, 11))) == 1
    assert applying.look(again, later(now, 11)) == []


# SQLite has one writer: there, numbers show in their order.
if connection.vendor == "postgresql":

    def test_one_that_is_committed_after_a_later_one_was_looked_at_is_acted_on(prod, now, make_rule, replays):
        make_rule()
        with ThreadPoolExecutor(1) as other, _in_a_transaction(other):
            below = other.submit(_die_in_queue, prod, 1, now).result()
            above = _die_in_queue(prod, 2, now)
            assert below < above
            applying.apply_rules(later(now, 10))
            assert replays.ids == [[above]]
        applying.apply_rules(later(now, 11))
        assert replays.ids == [[above], [below]]


@contextmanager
def _in_a_transaction(other: ThreadPoolExecutor) -> Iterator[None]:
    """Opens a transaction of the thread's own connection, and commits it in the end."""
    open_one = transaction.atomic()
    other.submit(open_one.__enter__).result()
    try:
        yield
    finally:
        other.submit(open_one.__exit__, None, None, None).result()
        other.submit(connections.close_all).result()


def _die_in_queue(prod: Cluster, queue_id: int, now: datetime) -> int:
    """Indexes a dead letter of a queue and a failure of its own, as workers do side by side; returns its number."""
    queue = DeadLetterQueue.objects.create(
        cluster=prod, topic_name="%DLQ%billing", broker_name="broker-a", queue_id=queue_id
    )
    properties = {Property.FAILURE_CLASS: f"Failure{queue_id}", Property.UNIQ_KEY: f"UNIQ{queue_id}"}
    message = dead_message(0, queue_id=queue_id, properties=properties, store_timestamp_ms=int(now.timestamp() * 1000))
    assert write(prod, queue, QueueReading((message,), 1, 1), now) == 1
    return DeadLetter.objects.get(queue_id=queue_id).pk


def die_as(prod: Cluster, offset: int, died_at: datetime, *, pk: int) -> int:
    """Indexes a dead letter under that number."""
    die(prod, offset, died_at)
    dead = DeadLetter.objects.get(queue_offset=offset)
    DeadLetter.objects.filter(pk=dead.pk).delete()
    dead.pk = pk
    dead.save(force_insert=True)
    return pk
