"""What the timeline publishes: Django signals, sent with one `event` within the transaction that wrote the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.dispatch import Signal

from mqadmin.clusters.models import Cluster
from mqadmin.rebalances.models import RebalanceEvent

# New events of the timeline were written. → EventsRecorded
events_recorded = Signal()
# Events that are there already say now how long consumption stood. → EventsRecorded
pauses_judged = Signal()


@dataclass(frozen=True, slots=True)
class EventsRecorded:
    cluster: Cluster
    events: Sequence[RebalanceEvent]
