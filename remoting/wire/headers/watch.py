"""Private header of the watch request (docs/ARCHITECTURE.md, "The watch request")."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int64


class WatchHeader(Header, kw_only=True):
    """29001. What changed since revision `since` of broker life `boot`; 0 and "" ask for everything.

    The answer waits up to `wait_ms` when nothing changed.
    """

    boot: str = ""
    since: Int64 = 0
    wait_ms: Int64 = 0


class WatchResponseHeader(Header, kw_only=True):
    """`is_snapshot`: the body holds everything, because `boot` or `since` is not known any more."""

    boot: str
    revision: Int64
    is_snapshot: bool
