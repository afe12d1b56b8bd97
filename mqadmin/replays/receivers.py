"""Notes which of the messages that replays sent came back to the dead letters."""

from __future__ import annotations

from collections import Counter

from django.db.models import F
from django.dispatch import receiver

from mqadmin.deadletters.signals import DeadLettersIndexed, dead_letters_indexed
from mqadmin.replays.models import ReplayEntry, ReplayJob


@receiver(dead_letters_indexed)
def note_dead_again(event: DeadLettersIndexed, **_: object) -> int:
    """Returns how many entries were not known to have failed again. Each counts once, however often it comes back."""
    known = {token for token, _ in event.of_replays}
    jobs = dict(ReplayJob.objects.filter(token__in=known, cluster=event.cluster).values_list("token", "pk"))
    counts: Counter[int] = Counter()
    for (token, entry_id), dead_letter_id in sorted(event.of_replays.items()):
        if token in jobs:
            entry = ReplayEntry.objects.filter(pk=entry_id, job=jobs[token], dead_again_id=None)
            counts[jobs[token]] += entry.update(dead_again_id=dead_letter_id)
    for job_id, count in sorted(counts.items()):
        ReplayJob.objects.filter(pk=job_id).update(dead_again_count=F("dead_again_count") + count)
    return counts.total()
