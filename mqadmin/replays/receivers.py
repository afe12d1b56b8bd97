"""Notes which of the messages that replays sent failed again: at an attempt, after which they wait for the next, or for
good, as dead letters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from django.db import transaction
from django.db.models import F
from django.dispatch import receiver

from mqadmin.clusters.bulk import Change, chunks, write
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.signals import DeadLettersIndexed, dead_letters_indexed
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.retries.signals import ReplayedFailed, replayed_failed

T = TypeVar("T")


@receiver(dead_letters_indexed)
def note_dead_again(event: DeadLettersIndexed, **_: object) -> int:
    """Returns how many entries were not known to be dead letters again. Each counts once, however often it comes."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    changes = []
    with transaction.atomic():
        for entry, dead_letter_id in _entries(event.cluster, event.of_replays):
            if entry.dead_again_id is None:
                values = {"dead_again_id": dead_letter_id}
                counts[entry.job_id]["dead_again_count"] += 1
                if entry.failed_attempt is None:
                    values["failed_attempt"] = 0
                    counts[entry.job_id]["failed_count"] += 1
                changes.append(Change(entry.pk, values))
        _write(changes, counts)
    return len(changes)


@receiver(replayed_failed)
def note_failed_attempts(event: ReplayedFailed, **_: object) -> int:
    """Returns how many entries were not known to have failed again."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    changes = []
    with transaction.atomic():
        for entry, (attempt, due_at) in _entries(event.cluster, event.attempts):
            if entry.failed_attempt is None:
                counts[entry.job_id]["failed_count"] += 1
            if entry.failed_attempt is None or entry.failed_attempt < attempt:
                changes.append(Change(entry.pk, {"failed_attempt": attempt, "retry_at": due_at}))
        _write(changes, counts)
    return sum(count.total() for count in counts.values())


def _entries(cluster: Cluster, told: Mapping[tuple[str, int], T]) -> Iterator[tuple[ReplayEntry, T]]:
    """Yields the entries with what is told of each.

    Their jobs are locked first, in their order, as whoever drives one locks it before its entries (`ledger.held`).
    """
    tokens = {token for token, _ in told}
    locked = ReplayJob.objects.select_for_update().filter(token__in=tokens, cluster=cluster).order_by("pk")
    jobs = dict(locked.values_list("token", "pk"))
    of_entries = {(jobs[token], entry_id): what for (token, entry_id), what in told.items() if token in jobs}
    for some in chunks(sorted({entry_id for _, entry_id in of_entries})):
        rows = ReplayEntry.objects.filter(pk__in=some, job__in=jobs.values()).order_by("pk")
        for entry in rows.only("job", "failed_attempt", "dead_again_id"):
            if (key := (entry.job_id, entry.pk)) in of_entries:
                yield entry, of_entries[key]


def _write(changes: Iterable[Change], counts: Mapping[int, Counter[str]]) -> None:
    write(ReplayEntry, changes)
    for job_id, added in sorted(counts.items()):
        ReplayJob.objects.filter(pk=job_id).update(**{name: F(name) + count for name, count in added.items()})
