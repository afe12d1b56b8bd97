"""What a page says on its socket. Pure: text in, values out.

    {"type": "subscribe", "subscriptions": [{"cluster": "prod", "group": "billing", "kinds": ["group"]}, …],
     "page": "/clusters/prod/groups/billing/?…", "language": "en"}     once
    {"type": "ready"}                                                  whenever it can take a region

`group` and `kinds` may be left out: the cluster's own changes, and changes of every kind. `page` is the address whose
region is pushed, in the language that the page has; without it the page is only told that something changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from mqadmin.live.events import ChangeKind, live_group

# An overview of that many clusters is kept fresh; what a page shows beyond it waits for a reload.
SUBSCRIPTIONS_MAX = 400
# That many subscriptions to groups with long names fit.
MESSAGE_CHARS_MAX = 128 * 1024
NAME_CHARS_MAX = 255
# A page of a longer address, whose search has many words, fetches its region by itself.
PAGE_CHARS_MAX = 2048

Name = Annotated[str, Meta(max_length=NAME_CHARS_MAX)]


class Subscription(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One cluster, or one consumer group of it. `group` "": the cluster itself; no `kinds`: every kind of change."""

    cluster: Name
    group: Name = ""
    kinds: Annotated[tuple[ChangeKind, ...], Meta(max_length=len(ChangeKind))] = ()

    @property
    def live_group(self) -> str:
        """Returns the name of the Channels group through which the changes come."""
        return live_group(self.cluster, self.group)

    def covers(self, kind: str) -> bool:
        """Tells whether the page wants changes of this kind."""
        return not self.kinds or kind in self.kinds


class Subscribe(Struct, tag="subscribe", tag_field="type", forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """What a page shows, and where. `page` is an address of this console as its own links have it: path and query."""

    subscriptions: Annotated[tuple[Subscription, ...], Meta(min_length=1, max_length=SUBSCRIPTIONS_MAX)]
    page: Annotated[str, Meta(max_length=PAGE_CHARS_MAX, pattern=r"^(/[!-~]*)?$")] = ""
    language: Annotated[str, Meta(max_length=10, pattern=r"^[a-zA-Z-]*$")] = ""


class Ready(Struct, tag="ready", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """The page has shown all that it was sent, and somebody looks at it."""


class InvalidMessage(Exception):
    """The page sent something that pages do not send, or more than they may."""


def read_message(text: str) -> Subscribe | Ready:
    """Returns what a page's message says. Raises InvalidMessage."""
    if len(text) > MESSAGE_CHARS_MAX:
        raise InvalidMessage(f"longer than {MESSAGE_CHARS_MAX} characters")
    try:
        return msgspec.json.decode(text, type=Subscribe | Ready)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidMessage(str(error)) from error


def write_subscribe(subscriptions: Sequence[Subscription], page: str, language: str) -> str:
    """Returns the message that a page sends; subscriptions beyond SUBSCRIPTIONS_MAX are left out."""
    shown = tuple(subscriptions[:SUBSCRIPTIONS_MAX])
    wanted = Subscribe(shown, page, language) if len(page) <= PAGE_CHARS_MAX else Subscribe(shown)
    return msgspec.json.encode(wanted).decode()
