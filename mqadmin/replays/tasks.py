"""Celery: replays are driven, a step at a time (queue `jobs`).

A step that leaves work sends the next one. Beat starts one for every replay that nobody drives: whose process died, or
that waited for a broker or a time.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from celery import shared_task
from django.utils import timezone
from kombu.exceptions import OperationalError

from mqadmin.replay_files.retention import remove_old as remove_old_files
from mqadmin.replays import ledger, retention
from mqadmin.replays import selectors as replay_selectors
from mqadmin.replays.driving import Left, drive_step

logger = logging.getLogger(__name__)

# Replays that beat starts at once; the others have their turn at the next tick.
STARTED_AT_ONCE = 20
# A step that waits longer than that for a worker is not needed: beat starts another.
WAKE_EXPIRES_S = 30
# A replay that was left shorter ago waits in the worker's queue: a second task would give it two turns for one.
LEFT_FOR_S = 3


@shared_task
def drive_replay(job_id: int, since: float | None = None) -> None:
    """Drives one step; the lease keeps a second one from doing anything. `since`: what may be sent counts from then."""
    step = drive_step(job_id, behind_s=0.0 if since is None else max(0.0, time.time() - since))
    if step.left == Left.NOW:
        wake(job_id, since=time.time() - step.behind_s)


@shared_task
def drive_replays() -> None:
    """Reads one index where there is nothing to do."""
    left = ledger.nobody_drives(timezone.now() - timedelta(seconds=LEFT_FOR_S))
    due = ledger.with_work().filter(left).order_by("lease_until", "pk")
    for job_id in due.values_list("pk", flat=True)[:STARTED_AT_ONCE]:
        wake(job_id)


@shared_task
def remove_old_replays() -> None:
    count = retention.remove_old(timezone.now())
    if count:
        logger.info("%d replays that ended longer ago than dead letters are kept were removed", count)


@shared_task
def remove_old_replay_files() -> None:
    count = remove_old_files(timezone.now(), in_use=replay_selectors.files_in_use())
    if count:
        logger.info("%d files that nobody replays any more were removed", count)


def wake(job_id: int, since: float | None = None) -> None:
    """Has the replay go on soon. Without Redis it goes on when beat says so."""
    try:
        drive_replay.apply_async((job_id, since), expires=WAKE_EXPIRES_S, retry=False)
    except OperationalError as error:
        logger.warning("replay %s goes on later: %s", job_id, error)
