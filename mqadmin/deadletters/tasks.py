"""Celery: dead letters are indexed, and old ones removed (queue `jobs`).

The index is woken when a dead-letter queue grew; beat starts it too, for what was left or could not be read.
"""

from __future__ import annotations

import logging

from celery import Task, shared_task
from django.db.models import F
from django.utils import timezone
from kombu.exceptions import OperationalError

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import archive_marks, indexing, late_reasons, retention
from mqadmin.deadletters.models import DeadLetterQueue

logger = logging.getLogger(__name__)

# A step that waits longer than that for a worker is not needed: beat starts another.
WAKE_EXPIRES_S = 10


@shared_task
def index_dead_letters() -> None:
    """Reads a few indexes where there is nothing to do."""
    behind = DeadLetterQueue.objects.filter(end_offset__gt=F("next_offset"))
    for cluster in Cluster.objects.filter(pk__in=behind.values("cluster")):
        indexing.index_step(cluster)
    late_reasons.join_late_reasons(timezone.now())
    archive_marks.carry_on()


@shared_task
def remove_old_dead_letters() -> None:
    now = timezone.now()
    count = retention.remove_old(now)
    if count:
        logger.info("%d dead letters that are older than what is kept were removed from the index", count)
    if retention.has_old(now):
        _send(remove_old_dead_letters, "old dead letters are removed later: %s")


def wake() -> None:
    """Has the index go on soon. Without Redis it goes on when beat says so."""
    _send(index_dead_letters, "the index of dead letters goes on later: %s")


def _send(task: Task[[], None], words: str) -> None:
    try:
        task.apply_async(expires=WAKE_EXPIRES_S, retry=False)
    except OperationalError as error:
        logger.warning(words, error)
