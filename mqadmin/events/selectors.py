"""Reads events by their numbers."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Max, Min, QuerySet

from mqadmin.events.kinds import EventFilter
from mqadmin.events.models import Event


@dataclass(frozen=True, slots=True)
class Window:
    """The numbers of the oldest and of the newest event that is kept; 0 and 0 where there is none."""

    oldest_id: int
    last_id: int

    def has_gap_after(self, event_id: int) -> bool:
        """Tells whether events after this number are gone, or the number is none that was ever given."""
        return event_id > self.last_id or event_id + 1 < self.oldest_id


def window() -> Window:
    """Returns what is kept now."""
    found = Event.objects.aggregate(oldest=Min("pk"), last=Max("pk"))
    return Window(found["oldest"] or 0, found["last"] or 0)


def matching(wanted: EventFilter) -> QuerySet[Event]:
    """Returns the events by cluster and kind, the oldest first; patterns of groups are for the caller to apply."""
    events = Event.objects.order_by("pk")
    names = wanted.cluster_names
    if names is not None:
        events = events.filter(cluster_name__in=names)
    return events.filter(kind__in=wanted.kinds) if wanted.kinds else events
