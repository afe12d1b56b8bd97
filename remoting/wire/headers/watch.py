"""Private header of the watch request (docs/ARCHITECTURE.md, "The watch request")."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int64


class WatchHeader(Header, kw_only=True):
    """29001. What changed since revision `since` of broker life `boot`; 0 and "" ask for everything.

    The answer waits up to `wait_ms` when nothing changed. `page` asks for the next page of an answer that has more.
    """

    boot: str = ""
    since: Int64 = 0
    wait_ms: Int64 = 0
    page: Int64 | None = None


class WatchResponseHeader(Header, kw_only=True):
    """`is_snapshot`: the body holds everything, because `boot` or `since` is not known any more.

    `next_page` is 0 where all is said, else what to ask for next on the same connection. All pages tell of the same
    `revision`, or of what is newer, which the changes after that revision then tell again.
    """

    boot: str
    revision: Int64
    is_snapshot: bool
    next_page: Int64 = 0
