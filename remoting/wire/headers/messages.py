"""Headers of looking messages up: 33."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int64


class ViewMessageHeader(Header, kw_only=True):
    """33. `offset` is a commit-log offset, taken from an offset message id."""

    offset: Int64
    topic: str | None = None
