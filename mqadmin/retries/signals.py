"""What reading failed attempts publishes, once per queue and step, within the transaction that wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.dispatch import Signal

from mqadmin.clusters.models import Cluster

# Messages that replays had sent failed again, and wait for their next attempt. → ReplayedFailed
replayed_failed = Signal()


class ReplayedAttempt(NamedTuple):
    attempt: int
    due_at: datetime | None


@dataclass(frozen=True, slots=True)
class ReplayedFailed:
    """`attempts`: a replay's token and the entry of its ledger → which attempt failed, and when the next comes."""

    cluster: Cluster
    attempts: Mapping[tuple[str, int], ReplayedAttempt]
