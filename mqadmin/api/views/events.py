"""`/events`: what happened, by number; what the websocket `/ws/events` sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rest_framework import serializers

from mqadmin.api.access import clusters_seen, scope_of
from mqadmin.api.listing import FILTER_CHARS_MAX, ListQuery, ListResource, described
from mqadmin.api.rows import Rows
from mqadmin.api.serializers.events import KINDS, EventSerializer
from mqadmin.clusters.models import ID_MAX
from mqadmin.events import selectors
from mqadmin.events.kinds import EventFilter
from mqadmin.events.models import Event
from mqadmin.people import access


class EventsQuery(ListQuery):
    """Which events."""

    after = serializers.IntegerField(
        min_value=0, max_value=ID_MAX, default=0, help_text="Those with a larger number alone."
    )
    kind = serializers.ChoiceField(choices=KINDS, default="", allow_blank=True)
    cluster = serializers.CharField(max_length=FILTER_CHARS_MAX, default="", allow_blank=True)
    group = serializers.CharField(max_length=FILTER_CHARS_MAX, default="", allow_blank=True)


@dataclass(frozen=True, slots=True)
class EventRows:
    """Events by number."""

    wanted: EventFilter
    group: str
    after_id: int

    def after(self, position: Sequence[Any] | None, size: int) -> list[Event]:
        found = selectors.matching(self.wanted).filter(pk__gt=position[0] if position else self.after_id)
        return list((found.filter(group_name=self.group) if self.group else found)[:size])

    def position(self, row: Event) -> list[Any]:
        return [row.pk]

    def total_count(self) -> None:
        return None


@described("list_events", "List events")
class Events(ListResource):
    """What happened, the oldest first: what the websocket `/ws/events` sends. The last 50,000 are kept."""

    row = EventSerializer
    query = EventsQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Event]:
        seen = None
        if not access.sees_all(self.request.user, scope_of(self.request)):
            seen = frozenset(clusters_seen(self.request).values_list("name", flat=True))
        clusters = frozenset([query["cluster"]]) if query["cluster"] else frozenset()
        kinds = frozenset([query["kind"]]) if query["kind"] else frozenset()
        return EventRows(EventFilter(seen, clusters, kinds), query["group"], query["after"])
