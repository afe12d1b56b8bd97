"""Removes files that nobody replays any more, and what was broken off while it was read."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import Q

from mqadmin.replay_files.limits import KEPT_DAYS
from mqadmin.replay_files.models import ReplayFile
from mqadmin.replay_files.storing import remove

# Reading the largest takes minutes; what stands for longer has lost its reader.
READ_WITHIN = timedelta(hours=1)


def remove_old(now: datetime, *, in_use: Collection[int]) -> int:
    """Returns how many were removed; those `in_use` stay."""
    is_old = Q(read_at__lt=now - timedelta(days=KEPT_DAYS)) | Q(read_at=None, created_at__lt=now - READ_WITHIN)
    old = list(ReplayFile.objects.filter(is_old).exclude(pk__in=in_use))
    for file in old:
        remove(file)
    return len(old)
