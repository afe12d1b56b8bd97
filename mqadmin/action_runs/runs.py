"""Runs in the database: claimed before anything is changed, ended with their audit entry in one transaction.

A claim takes the person's key and the subject of the cluster; unique constraints decide between two at the same moment.
A process that dies in a run leaves a row without an end: after ABANDONED_AFTER it is ended, and the audit says that its
outcome is not known. So each run that changed anything has one audit entry, whatever happens.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from mqadmin.action_runs.models import KEY_CHARS_MAX, ActionRun
from mqadmin.actions.declaration import ItemOutcome, ItemState, Undo, Values
from mqadmin.actions.secret_words import without_secrets
from mqadmin.audit import chain
from mqadmin.audit.models import REASON_CHARS_MAX, SUBJECT_CHARS_MAX, AuditEntry, Outcome

logger = logging.getLogger(__name__)

# Longer than any action may take: each request has its time-out, and all of one action are bounded together.
ABANDONED_AFTER = timedelta(minutes=5)
# For so long a key that was used is remembered.
KEYS_KEPT_FOR = timedelta(days=7)
# Of one value of refused arguments, in the audit.
VALUE_CHARS_MAX = 500
# Subjects of one `run_many`: what one request can carry out while its sender waits.
BATCH_RUNS_MAX = 100
LIST_ITEMS_MAX = 100
# Of one application of a file: each of its 500 topics and groups is created, and described.
TOGETHER_RUNS_MAX = 1000


class Refusal(StrEnum):
    """The kind of a refusal; each way in makes its own status of it."""

    PERMISSION = "permission"
    READ_ONLY = "read_only"
    ARGUMENTS = "arguments"
    CONFIRMATION = "confirmation"
    STALE = "stale"
    BUSY = "busy"
    KEY_REUSED = "key_reused"
    RULE = "rule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A request for a run, as the audit names it. Asked again from elsewhere, it is the same attempt."""

    actor: str
    action: str
    cluster: str
    subject_kind: str
    subject: str
    arguments: dict[str, Any]
    origin: Mapping[str, str] = field(compare=False)
    batch: uuid.UUID | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The end of a run, as its audit entry says it.

    `refusal` and `errors` (sentences by argument) are set when this very call was refused; `is_repeat` when its key had
    carried the same out before, and nothing was done now.
    """

    run_id: uuid.UUID
    at: datetime
    actor: str
    action: str
    cluster: str
    subject: str
    arguments: Values
    outcome: Outcome
    reason: str
    items: tuple[ItemOutcome, ...] = ()
    undo: Undo | None = None
    refusal: Refusal | None = None
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_repeat: bool = False
    batch: uuid.UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InProgress:
    """A run that another call is carrying out."""

    run_id: uuid.UUID
    actor: str
    action: str
    cluster: str
    subject: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Conflict:
    """The reason why a run cannot claim its key or its subject."""

    refusal: Refusal
    reason: str


def claim(attempt: Attempt, key: str) -> ActionRun | Result | InProgress | Conflict:
    """Claims key and subject for a run. Returns the earlier run of the same key instead, or who holds the subject."""
    audit_abandoned(timezone.now())
    run = ActionRun(**_fields(attempt), key=_without_nul(key)[:KEY_CHARS_MAX] or str(uuid.uuid4()))
    for _try in range(2):
        if (earlier := ActionRun.objects.filter(actor=attempt.actor, key=run.key).first()) is not None:
            return _repeated(attempt, earlier)
        try:
            with transaction.atomic():
                run.save(force_insert=True)
        except IntegrityError:
            holder = ActionRun.objects.filter(
                cluster=run.cluster, subject_kind=run.subject_kind, subject=run.subject, ended_at=None
            ).first()
            if holder is not None and (holder.actor, holder.key) != (run.actor, run.key):
                words = _("%(person)s is changing %(subject)s at this moment. Look at it again when that has ended.")
                return Conflict(Refusal.BUSY, words % {"person": holder.actor, "subject": holder.subject})
        else:
            return run
    return Conflict(Refusal.BUSY, _("%(subject)s is being changed at this moment.") % {"subject": run.subject})


def finish(
    run: ActionRun, outcome: Outcome, items: Sequence[ItemOutcome], *, reason: str = "", undo: Undo | None = None
) -> Result:
    """Ends a run and writes its audit entry."""
    with transaction.atomic():
        if ActionRun.objects.filter(pk=run.pk, ended_at=None).update(ended_at=timezone.now()):
            ended = result_of(_record(run.pk, _attempt(run), outcome, items, reason, undo))
            # With the secrets, which the audit does not keep.
            return replace(ended, items=tuple(items))
    logger.error(
        "%s took longer than %s; the audit says that its outcome is not known: %s", run, ABANDONED_AFTER, items
    )
    return result_of(AuditEntry.objects.get(run=run.pk))


def cancel(run: ActionRun, outcome: Outcome, reason: str) -> Result:
    """Writes the audit entry of a run that changed nothing, and frees its key."""
    with transaction.atomic():
        ActionRun.objects.filter(pk=run.pk).delete()
        return result_of(_record(run.pk, _not_carried_out(_attempt(run)), outcome, (), reason, None))


def refused(attempt: Attempt, reason: str) -> Result:
    """Writes the audit entry of a run that was refused before it claimed anything."""
    return result_of(_record(uuid.uuid4(), _not_carried_out(attempt), Outcome.REFUSED, (), reason, None))


def find(run_id: uuid.UUID) -> Result | InProgress | None:
    """Returns the end of a run, or the run while it is under way; None for an unknown id."""
    entry = AuditEntry.objects.filter(run=run_id).first()
    if entry is not None:
        return result_of(entry)
    run = ActionRun.objects.filter(pk=run_id).first()
    return None if run is None else _in_progress(run)


def find_batch(batch: uuid.UUID, count_max: int = BATCH_RUNS_MAX) -> tuple[Result, ...]:
    """Returns the ends of the runs that were asked for together, in the order in which they ended."""
    return tuple(result_of(entry) for entry in AuditEntry.objects.filter(batch=batch).order_by("pk")[:count_max])


def find_together(
    batch: uuid.UUID, now: datetime, count_max: int = BATCH_RUNS_MAX
) -> tuple[tuple[Result, ...], tuple[InProgress, ...]]:
    """Returns the ends of the runs asked for together, and those that are being carried out; each run is in one."""
    claimed = ActionRun.objects.filter(batch=batch, ended_at=None, started_at__gte=now - ABANDONED_AFTER)
    # Asked for first: one that ends in between is among the ended ones then.
    under_way = [_in_progress(run) for run in claimed.order_by("started_at")]
    ended = find_batch(batch, count_max)
    ended_ids = {one.run_id for one in ended}
    return ended, tuple(one for one in under_way if one.run_id not in ended_ids)


def keys_of(run_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Returns the keys that are remembered, by run; a run that was refused used none."""
    return dict(ActionRun.objects.filter(pk__in=run_ids).values_list("pk", "key"))


def audit_abandoned(now: datetime) -> int:
    """Ends runs whose process ended before they did; returns how many."""
    count = 0
    for run in ActionRun.objects.filter(ended_at=None, started_at__lt=now - ABANDONED_AFTER):
        with transaction.atomic():
            if ActionRun.objects.filter(pk=run.pk, ended_at=None).update(ended_at=now):
                reason = _("The process that carried it out ended first. Look at what is there now.")
                _record(run.pk, _not_carried_out(_attempt(run)), Outcome.UNKNOWN, (), reason, None)
                count += 1
    return count


def forget_old_keys(now: datetime) -> int:
    """Deletes ended runs after KEYS_KEPT_FOR; returns how many."""
    return ActionRun.objects.filter(ended_at__lt=now - KEYS_KEPT_FOR).delete()[0]


def result_of(entry: AuditEntry) -> Result:
    """Returns the result that an audit entry describes."""
    return Result(
        run_id=entry.run,
        at=entry.at,
        actor=entry.actor,
        action=entry.action,
        cluster=entry.cluster,
        subject=entry.subject,
        arguments=entry.arguments,
        outcome=Outcome(entry.outcome),
        reason=entry.reason,
        items=tuple(
            ItemOutcome(
                item=one["item"],
                state=ItemState(one["state"]),
                before=_of_item(entry.before, one["item"]),
                after=_of_item(entry.after, one["item"]),
                words=one["words"],
            )
            for one in entry.items
        ),
        undo=Undo(**entry.undo) if entry.undo else None,
        batch=entry.batch,
    )


def shortened(values: Mapping[str, Any]) -> dict[str, Any]:
    """Shortens values that nobody has validated to what the audit keeps of them; none of it may be a password."""
    kept = without_secrets(dict(list(values.items())[:LIST_ITEMS_MAX]))
    return {name[:100]: _shortened(value) for name, value in kept.items()}


def _shortened(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_shortened(one) for one in value[:LIST_ITEMS_MAX]]
    text = _without_nul(str(value))
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[:VALUE_CHARS_MAX]}…"


def _without_nul(text: str) -> str:
    """Removes NUL characters, which PostgreSQL takes in no text."""
    return text.replace("\0", "")


def _repeated(attempt: Attempt, earlier: ActionRun) -> Result | InProgress | Conflict:
    if _attempt(earlier) != attempt:
        words = _("The key of this change was used for another one: send a new key, or open the page anew.")
        return Conflict(Refusal.KEY_REUSED, words)
    entry = AuditEntry.objects.filter(run=earlier.pk).first()
    if entry is None:
        return _in_progress(earlier)
    return replace(result_of(entry), is_repeat=True)


def _in_progress(run: ActionRun) -> InProgress:
    return InProgress(
        run_id=run.pk,
        actor=run.actor,
        action=run.action,
        cluster=run.cluster,
        subject=run.subject,
        started_at=run.started_at,
    )


def _record(
    run_id: uuid.UUID, attempt: Attempt, outcome: Outcome, items: Sequence[ItemOutcome], reason: str, undo: Undo | None
) -> AuditEntry:
    """Writes the one audit entry of a run."""
    entry = AuditEntry(
        run=run_id,
        actor=attempt.actor,
        action=attempt.action,
        cluster=attempt.cluster,
        subject=_without_nul(attempt.subject)[:SUBJECT_CHARS_MAX],
        arguments=attempt.arguments,
        before=_by_item({one.item: one.before for one in items}),
        after=_by_item({one.item: one.after for one in items}),
        items=[{"item": one.item, "state": one.state, "words": one.words} for one in items],
        outcome=outcome,
        reason=_without_nul(reason)[:REASON_CHARS_MAX],
        undo={"action": undo.action, "arguments": undo.arguments} if undo is not None else None,
        batch=attempt.batch,
        **attempt.origin,
    )
    return chain.append(entry)


def _by_item(values: Mapping[str, Values | None]) -> Values:
    """Returns the values by item; those of the subject itself (item "") stand alone."""
    return (values[""] or {}) if "" in values else values


def _of_item(values: Mapping[str, Any], item: str) -> Values | None:
    return values.get(item) if item else values


def _fields(attempt: Attempt) -> dict[str, Any]:
    return {name: getattr(attempt, name) for name in attempt.__slots__}


def _attempt(run: ActionRun) -> Attempt:
    return Attempt(
        actor=run.actor,
        action=run.action,
        cluster=run.cluster,
        subject_kind=run.subject_kind,
        subject=run.subject,
        arguments=run.arguments,
        origin=run.origin,
        batch=run.batch,
    )


def _not_carried_out(attempt: Attempt) -> Attempt:
    """Returns the attempt without what may be a password: only a preview refuses a job that would set one."""
    return replace(attempt, arguments=without_secrets(attempt.arguments))
