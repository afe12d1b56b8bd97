"""The message with which a script subscribes to events. Pure: text in, values out.

    {"type": "subscribe", "after": 4711, "clusters": ["prod"], "groups": ["billing", "mail-*"], "kinds": ["verdict"]}

Everything but `type` may be left out: events from now on, of all clusters that the token is for, of every kind.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from mqadmin.clusters.models import ID_MAX
from mqadmin.events.kinds import EventKind
from mqadmin.live.subscriptions import NAME_CHARS_MAX, InvalidMessage

# Of clusters and of patterns each: a script that wants more wants all of them.
NAMES_MAX = 100
MESSAGE_CHARS_MAX = 64 * 1024

Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
Names = Annotated[tuple[Name, ...], Meta(max_length=NAMES_MAX)]


class EventsWanted(Struct, tag="subscribe", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """What a script subscribes to. `after` None: from now on."""

    after: Annotated[int, Meta(ge=0, le=ID_MAX)] | None = None
    clusters: Names = ()
    groups: Names = ()
    kinds: Annotated[tuple[EventKind, ...], Meta(max_length=len(EventKind))] = ()


def read_events_wanted(text: str) -> EventsWanted:
    """Returns what a script's message says. Raises InvalidMessage."""
    if len(text) > MESSAGE_CHARS_MAX:
        raise InvalidMessage(f"longer than {MESSAGE_CHARS_MAX} characters")
    try:
        return msgspec.json.decode(text, type=EventsWanted)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidMessage(str(error)) from error
