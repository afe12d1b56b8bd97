"""Celery: failed attempts are read where brokers keep them, and old ones removed (queue `jobs`)."""

from __future__ import annotations

import logging
import time

from celery import shared_task
from django.utils import timezone

from mqadmin.retries import indexing, turns

logger = logging.getLogger(__name__)

# One run, every 15 s: it begins with no further cluster then, so that slow ones do not keep a worker from what else is
# due. The next run begins with those that were left out.
RUN_S = 10.0


@shared_task
def index_retries() -> None:
    """Reads what came to the delay queues of clusters, in turn; what one of them does not let read, costs no other."""
    ends_s = time.monotonic() + RUN_S
    for cluster in turns.clusters_in_turn():
        now = timezone.now()
        try:
            if brokers := turns.to_ask(cluster, now):
                with turns.claimed(cluster, now) as is_claimed:
                    if is_claimed:
                        indexing.index_step(cluster, brokers)
        except Exception:
            logger.exception("the retries of cluster %s were not read; they are tried again", cluster.name)
        if time.monotonic() >= ends_s:
            break


@shared_task
def remove_old_retries() -> None:
    count = indexing.remove_old(timezone.now())
    if count:
        logger.info("%d failed attempts that are older than what is kept were removed", count)
