"""Headers of RECALL_MESSAGE (370)."""

from __future__ import annotations

from remoting.wire.headers.typed import Header


class RecallMessageHeader(Header, kw_only=True):
    """`RecallMessageRequestHeader`."""

    producer_group: str | None = None
    topic: str
    recall_handle: str = ""


class RecallMessageResponseHeader(Header, kw_only=True):
    """`msg_id`: the unique key of the message that will not be delivered."""

    msg_id: str
