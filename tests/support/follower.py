"""A follower in a thread, as in a worker's process; a stop is asked for as a worker does it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.utils import timezone

from mqadmin.clusters.models import Cluster, FollowLease
from mqadmin.observing import following, leases


@contextmanager
def follower_thread(cluster: Cluster, *, stopped_within_s: float) -> Iterator[threading.Thread]:
    """Follows `cluster`; raises AssertionError when it does not stop in time."""
    holder = leases.grant(cluster, timezone.now())
    assert holder is not None

    def run() -> None:
        try:
            following.follow(cluster.pk, holder, "jobs@here")
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    yield thread
    FollowLease.objects.update(stop_asked=True)
    thread.join(stopped_within_s)
    assert not thread.is_alive()
