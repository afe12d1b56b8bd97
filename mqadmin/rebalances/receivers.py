"""Writes the timeline as rebalances are observed."""

from __future__ import annotations

from django.dispatch import receiver

from mqadmin.observing.signals import RebalanceObserved, rebalance_observed
from mqadmin.rebalances import recording
from mqadmin.rebalances.models import RebalanceEvent
from mqadmin.rebalances.signals import EventsRecorded, events_recorded


@receiver(rebalance_observed)
def record_events(event: RebalanceObserved, **_: object) -> int:
    """Returns how many rows were written."""
    if event.is_sampled:
        events = recording.events_of_samples(event.cluster.pk, event.changes.values(), event.at)
    else:
        events = recording.events_of_watch(event.cluster.pk, event.events, event.changes)
    if events:
        recording.record(events)
        events_recorded.send(sender=RebalanceEvent, event=EventsRecorded(event.cluster, events))
    return len(events)
