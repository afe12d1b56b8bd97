"""The message with which a page subscribes to the clusters and groups that it shows. Pure: text in, values out.

A page sends one message, and no other:

    {"type": "subscribe", "subscriptions": [{"cluster": "prod", "group": "billing", "kinds": ["group"]}, …]}

`group` and `kinds` may be left out: the cluster's own changes, and changes of every kind.
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


class _Subscribe(Struct, tag="subscribe", tag_field="type", forbid_unknown_fields=True):
    subscriptions: Annotated[tuple[Subscription, ...], Meta(min_length=1, max_length=SUBSCRIPTIONS_MAX)]


class InvalidMessage(Exception):
    """The page sent something else than one subscribe message within the limits."""


def read_subscribe(text: str) -> tuple[Subscription, ...]:
    """Returns the subscriptions of a page's message. Raises InvalidMessage."""
    if len(text) > MESSAGE_CHARS_MAX:
        raise InvalidMessage(f"longer than {MESSAGE_CHARS_MAX} characters")
    try:
        return msgspec.json.decode(text, type=_Subscribe).subscriptions
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidMessage(str(error)) from error


def write_subscribe(subscriptions: Sequence[Subscription]) -> str:
    """Returns the message that a page sends; subscriptions beyond SUBSCRIPTIONS_MAX are left out."""
    return msgspec.json.encode(_Subscribe(tuple(subscriptions[:SUBSCRIPTIONS_MAX]))).decode()
