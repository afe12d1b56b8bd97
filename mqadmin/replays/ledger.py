"""Who drives a replay, and the transactions in which they write its ledger.

A lease says who drives. Every transaction begins by renewing it, and does nothing where another has it: a process that
was taken for dead writes no more. The counts of the job move in the transaction that moves its entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from mqadmin.clusters.bulk import Change, write
from mqadmin.replays.models import WORDS_CHARS_MAX, ReplayEntry, ReplayJob, new_token
from mqadmin.replays.states import NEXT_ENTRY_STATES, EntryState, JobState

# A driver writes about once a second; SQLite's one writer can starve for some seconds behind bulk writes.
LEASE_S = 30


class LeaseLost(Exception):
    """Another drives the replay now."""


def with_work() -> QuerySet[ReplayJob]:
    """Returns the replays that somebody must drive: to send, to look for what may have been sent, to skip the rest."""
    return ReplayJob.objects.filter(
        Q(state=JobState.RUNNING) | Q(sending_count__gt=0) | Q(state=JobState.CANCELLED, waiting_count__gt=0)
    )


def nobody_drives(now: datetime) -> Q:
    """Returns the condition on replays that nobody has driven since."""
    return Q(lease_until=None) | Q(lease_until__lte=now)


def others_wait(job_id: int, now: datetime) -> bool:
    """Returns whether another replay has work and nobody who drives it."""
    return with_work().filter(nobody_drives(now)).exclude(pk=job_id).exists()


def take(job_id: int, now: datetime, *, lease_s: float = LEASE_S) -> str | None:
    """Returns the token of a new lease; None while another holds one, or there is nothing to do."""
    token = new_token()
    until = now + timedelta(seconds=lease_s)
    taken = with_work().filter(nobody_drives(now), pk=job_id).update(lease_token=token, lease_until=until)
    return token if taken else None


def release(job_id: int, token: str, now: datetime) -> None:
    """Lets another take it at once."""
    ReplayJob.objects.filter(pk=job_id, lease_token=token).update(lease_until=now)


@contextmanager
def held(job_id: int, token: str, *, lease_s: float = LEASE_S) -> Iterator[None]:
    """Opens a transaction in which the lease is held and renewed. Raises LeaseLost."""
    with transaction.atomic():
        until = timezone.now() + timedelta(seconds=lease_s)
        if not ReplayJob.objects.filter(pk=job_id, lease_token=token).update(lease_until=until):
            raise LeaseLost(f"another process drives replay {job_id}")
        yield


def move(job_id: int, entries: Iterable[ReplayEntry], to: EntryState, words: str = "", **values: object) -> None:
    """Moves entries to a state, with these further values, and the job's counts with them. Within `held`."""
    moved = list(entries)
    save(job_id, [(entry, to, {"words": words, **values}) for entry in moved])


def save(job_id: int, changes: Iterable[tuple[ReplayEntry, EntryState, dict[str, object]]]) -> None:
    """Moves each entry to its state with its values, and the job's counts with them. Within `held`."""
    moved: Counter[str] = Counter()
    rows = []
    for entry, to, values in changes:
        assert to in NEXT_ENTRY_STATES[EntryState(entry.state)], f"{entry.state} → {to}"
        moved[entry.state] -= 1
        moved[to] += 1
        values = {"state": to.value, **values}
        if "words" in values:
            values["words"] = str(values["words"])[:WORDS_CHARS_MAX]
        rows.append(Change(entry.pk, values))
        for name, value in values.items():
            setattr(entry, name, value)
    write(ReplayEntry, rows)
    count(job_id, moved)


def count(job_id: int, moved: Counter[str], *, new_count: int = 0) -> None:
    """Adds to the counts of a job; `new_count` entries are new."""
    deltas = {f"{state}_count": F(f"{state}_count") + delta for state, delta in moved.items() if delta}
    if new_count:
        deltas["total_count"] = F("total_count") + new_count
    if deltas:
        ReplayJob.objects.filter(pk=job_id).update(**deltas)
