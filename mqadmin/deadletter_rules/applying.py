"""Applies rules: looks at the dead letters that are new to each, decides, writes what it decided, and carries it out.

What was decided, the counts by message and the place reached are written in one transaction, and only where no other
look was written meanwhile: of two workers one decides. What shows below that place later is looked at then (`gaps.py`).
An action runs under the key of its turn: a worker that dies in it is followed by one that finds the same run, and
nothing is done twice.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext_noop

from mqadmin.action_runs import runner, runs
from mqadmin.action_runs.runs import InProgress, Refusal, Result
from mqadmin.audit.models import Outcome
from mqadmin.deadletter_rules.deciding import Decision, Does, Fact, Rule, decide, is_within_hours
from mqadmin.deadletter_rules.gaps import GAPS_MAX, NumberGap, gaps_after, gaps_of, looked_at
from mqadmin.deadletter_rules.models import WORDS_CHARS_MAX, DeadLetterRule, RaisedFailure, RuleCount, RuleTurn
from mqadmin.deadletter_rules.signals import FailureRaised, failure_raised
from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.people.access import Scope
from mqadmin.people.caller import Caller, Way
from mqadmin.people.roles import Role
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import ENDED

logger = logging.getLogger(__name__)

# Rules of one call; those that waited longest come first.
RULES_MAX = 100
# Dead letters that one rule looks at in one call, of all groups: they are read by their number.
LOOKED_AT_MAX = 5000
# Of one replay: as many as can be picked one by one.
TAKEN_MAX = 1000
# Turns that one look carries out at once; the others with the next call.
TURNS_AT_ONCE = 20
# An action that was refused for what may pass (rights, a read-only cluster) is tried again after that.
TRY_AGAIN = timedelta(minutes=10)
FORGOTTEN_AT_ONCE = 1000
# Gaps that one statement asks for.
GAPS_AT_ONCE = 100

# What may pass: the turn stays. Of anything else there is nothing to do.
_PASSING = frozenset({Refusal.PERMISSION, Refusal.READ_ONLY, Refusal.BUSY})


def apply_rules(now: datetime) -> int:
    """Ends the turns that are due, and applies the rules that run; returns how many actions were carried out."""
    due = RuleTurn.objects.select_related("rule__cluster").filter(due_at__lte=now, rule__is_running=True)
    count = sum(carry_out(turn, now) for turn in due.order_by("due_at")[:RULES_MAX])
    running = DeadLetterRule.objects.select_related("cluster").filter(is_running=True, turns=None)
    for rule in running.order_by(F("last_at").asc(nulls_first=True), "pk")[:RULES_MAX]:
        count += sum(carry_out(turn, now) for turn in look(rule, now)[:TURNS_AT_ONCE])
    return count


def look(rule: DeadLetterRule, now: datetime) -> list[RuleTurn]:
    """Decides about the dead letters that are new to the rule, and writes it; returns the turns to carry out."""
    if rule.does == Does.REPLAY and (running := _running_replay(rule)) is not None:
        _note(rule, now, gettext_noop("waits for replay %(number)d to end") % {"number": running})
        return []
    facts = _facts(rule)
    counts = _counts(rule, facts) if rule.does == Does.REPLAY else {}
    decision = decide(rule_of(rule), now, facts, counts, facts[0].id - 1 if facts else rule.reached_id)
    if decision.is_outside_hours:
        _note(rule, now, gettext_noop("waits for its hours"))
        return []
    known = gaps_of(rule.gaps)
    seen = {fact.id for fact in facts}
    settled = {one for one in seen if one <= decision.reached}
    gaps = gaps_after(known, rule.reached_id, settled, seen, now, is_whole=len(facts) < LOOKED_AT_MAX)
    if not settled and gaps == known:
        _note(rule, now)
        return []
    return _write(rule, decision, facts, max([rule.reached_id, *settled]), gaps, now)


def _write(
    rule: DeadLetterRule,
    decision: Decision,
    facts: Sequence[Fact],
    reached: int,
    gaps: Sequence[NumberGap],
    now: datetime,
) -> list[RuleTurn]:
    """Writes what was decided; nothing where another worker has decided, or the rule was paused, meanwhile.

    `reached` is the last one that is settled: what lies between it and one that is not is no gap yet.
    """
    taken = frozenset(decision.taken)
    message_ids = [fact.message_id for fact in facts if fact.id in taken]
    with transaction.atomic():
        here = DeadLetterRule.objects.filter(pk=rule.pk, look_count=rule.look_count, is_running=True)
        if not here.update(reached_id=reached, gaps=gaps, look_count=F("look_count") + 1, last_at=now):
            return []
        match Does(rule.does):
            case Does.REPLAY:
                _count(rule, message_ids, now)
                turns = _replay_turns(rule, decision, now)
            case Does.ARCHIVE:
                turns = [_turn(rule, "archive_failure", {"failure": pk}, now) for pk in _failure_ids(decision.taken)]
            case Does.RAISE:
                _raise(rule, decision.taken, now)
                turns = []
        if decision.given_up:
            words = gettext_noop("%(count)d were replayed as often as the rule allows")
            _note(rule, now, words % {"count": len(decision.given_up)})
    return turns


def _replay_turns(rule: DeadLetterRule, decision: Decision, now: datetime) -> list[RuleTurn]:
    if not decision.taken:
        return []
    ids = " ".join(str(one) for one in decision.taken)
    arguments = {"group": rule.group_name, "target": "group", "rate": rule.rate_per_s, "ids": ids}
    return [_turn(rule, "start_replay", arguments, now)]


def _turn(rule: DeadLetterRule, action: str, arguments: Mapping[str, object], now: datetime) -> RuleTurn:
    return RuleTurn.objects.create(rule=rule, action=action, arguments=arguments, due_at=now)


def carry_out(turn: RuleTurn, now: datetime) -> bool:
    """Runs the action for whoever made the rule, with an operator's rights on its cluster; returns whether it ended."""
    rule = turn.rule
    if not is_within_hours(rule_of(rule), now):
        _note(rule, now, gettext_noop("waits for its hours"))
        RuleTurn.objects.filter(pk=turn.pk).update(due_at=now + TRY_AGAIN)
        return False
    account = get_user_model()._default_manager.filter(username=rule.acts_for).first()
    bounds = Scope(role=Role.OPERATOR, clusters=frozenset({rule.cluster.name}))
    caller = Caller(
        person=account or AnonymousUser(), way=Way.CELERY, via=f"rule {rule.name}"[: runs.VALUE_CHARS_MAX], scope=bounds
    )
    result = runner.run(caller, turn.action, rule.cluster.name, turn.arguments, key=str(turn.key))
    if isinstance(result, InProgress):
        RuleTurn.objects.filter(pk=turn.pk).update(due_at=now + TRY_AGAIN)
        return False
    _note(rule, now, result.reason, run=result)
    if result.refusal in _PASSING or (result.refusal is None and result.outcome == Outcome.FAILED):
        RuleTurn.objects.filter(pk=turn.pk).update(due_at=now + TRY_AGAIN)
        return False
    with transaction.atomic():
        count, _ = RuleTurn.objects.filter(pk=turn.pk).delete()
        if count and result.refusal is not None and turn.action == "start_replay":
            _uncount(rule, [int(one) for one in str(turn.arguments["ids"]).split()])
    return True


def forget_old_counts(now: datetime) -> int:
    """Forgets how often messages were replayed that are longer gone than dead letters are kept; returns how many."""
    before = now - timedelta(days=settings.MQADMIN_DEAD_LETTER_DAYS)
    old = list(RuleCount.objects.filter(last_at__lt=before).values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    RuleCount.objects.filter(pk__in=old).delete()
    return len(old)


def rule_of(row: DeadLetterRule) -> Rule:
    """Returns what decisions need of it."""
    return Rule(
        group=row.group_name,
        does=Does(row.does),
        identity=row.identity,
        class_pattern=row.class_pattern,
        text_pattern=row.text_pattern,
        after=timedelta(minutes=row.after_minutes),
        times_max=row.times_max,
        from_hour=row.from_hour,
        to_hour=row.to_hour,
        zone=settings.MQADMIN_TIME_ZONE,
        taken_max=TAKEN_MAX,
    )


def _facts(rule: DeadLetterRule) -> list[Fact]:
    """Returns what became visible in the gaps, and what is new, in the order of their numbers."""
    gaps = gaps_of(rule.gaps)
    late: list[Fact] = []
    for start in range(0, len(gaps), GAPS_AT_ONCE):
        ranges = (Q(pk__range=(gap.first, gap.last)) for gap in gaps[start : start + GAPS_AT_ONCE])
        late += _read_facts(rule, reduce(or_, ranges), LOOKED_AT_MAX - len(late))
    new = _read_facts(rule, Q(pk__gt=rule.reached_id), LOOKED_AT_MAX - len(late))
    count = len(looked_at(rule.reached_id, [fact.id for fact in new], GAPS_MAX - len(gaps)))
    return [*late, *new[:count]]


def _read_facts(rule: DeadLetterRule, which: Q, count_max: int) -> list[Fact]:
    rows = DeadLetter.objects.filter(which).order_by("pk").values_list(
        "pk", "cluster", "group_name", "message_id", "dead_at", "failure__identity", "failure_class", "failure_text",
        "archived_at",
    )  # fmt: skip
    return [
        Fact(
            id=pk,
            # Of another cluster it is nobody's.
            group=group if cluster == rule.cluster_id else "",
            message_id=message_id,
            dead_at=dead_at,
            identity=identity,
            failure_class=failure_class,
            failure_text=failure_text,
            is_archived=archived_at is not None,
        )
        for pk, cluster, group, message_id, dead_at, identity, failure_class, failure_text, archived_at in rows[
            :count_max
        ]
    ]


def _counts(rule: DeadLetterRule, facts: Sequence[Fact]) -> dict[str, int]:
    wanted = [fact.message_id for fact in facts if fact.group == rule.group_name]
    found: dict[str, int] = {}
    for start in range(0, len(wanted), FORGOTTEN_AT_ONCE):
        some = RuleCount.objects.filter(rule=rule, message_id__in=wanted[start : start + FORGOTTEN_AT_ONCE])
        found |= dict(some.values_list("message_id", "count"))
    return found


def _count(rule: DeadLetterRule, message_ids: Sequence[str], now: datetime) -> None:
    times = Counter(message_ids)
    RuleCount.objects.bulk_create(
        [RuleCount(rule=rule, message_id=one, last_at=now) for one in times],
        ignore_conflicts=True,
        batch_size=FORGOTTEN_AT_ONCE,
    )
    for many in set(times.values()):
        ids = [one for one, count in times.items() if count == many]
        RuleCount.objects.filter(rule=rule, message_id__in=ids).update(count=F("count") + many, last_at=now)


def _uncount(rule: DeadLetterRule, dead_letter_ids: Sequence[int]) -> None:
    """Takes back what was counted for a replay that was refused; what the index has removed meanwhile stays counted."""
    rows = DeadLetter.objects.filter(pk__in=dead_letter_ids)
    times = Counter(rows.order_by().values_list("message_id", flat=True))
    for many in set(times.values()):
        ids = [one for one, count in times.items() if count == many]
        RuleCount.objects.filter(rule=rule, message_id__in=ids, count__gte=many).update(count=F("count") - many)


def _failure_ids(dead_letter_ids: Sequence[int]) -> list[int]:
    rows = DeadLetter.objects.filter(pk__in=dead_letter_ids)
    return list(rows.order_by("failure").values_list("failure", flat=True).distinct())


def _raise(rule: DeadLetterRule, dead_letter_ids: Sequence[int], now: datetime) -> None:
    counts = Counter(DeadLetter.objects.filter(pk__in=dead_letter_ids).values_list("failure", flat=True))
    for failure in Failure.objects.filter(pk__in=counts):
        raised, is_new = RaisedFailure.objects.get_or_create(
            rule=rule, failure=failure, defaults={"raised_at": now, "last_at": now}
        )
        RaisedFailure.objects.filter(pk=raised.pk).update(dead_count=F("dead_count") + counts[failure.pk], last_at=now)
        event = FailureRaised(rule, failure, counts[failure.pk], is_new)
        failure_raised.send(sender=DeadLetterRule, event=event)


def _running_replay(rule: DeadLetterRule) -> int | None:
    """Returns the number of the last replay while it has not ended: two together would be faster than allowed."""
    result = runs.find(rule.last_run) if rule.last_run is not None else None
    if not isinstance(result, Result):
        return None
    numbers = [one.after["replay"] for one in result.items if one.after and "replay" in one.after]
    return ReplayJob.objects.filter(pk__in=numbers).exclude(state__in=ENDED).values_list("pk", flat=True).first()


def _note(rule: DeadLetterRule, now: datetime, words: str = "", run: Result | None = None) -> None:
    """Says what the rule did last; a look at nothing leaves what was said before."""
    values: dict[str, object] = {"last_at": now}
    if words or run is not None:
        values["last_words"] = words[:WORDS_CHARS_MAX]
    if run is not None:
        values["last_run"] = run.run_id
    DeadLetterRule.objects.filter(pk=rule.pk).update(**values)
