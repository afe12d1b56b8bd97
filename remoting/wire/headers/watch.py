"""Private header of the watch request (docs/PRIVATE-REQUESTS.md)."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int64


class WatchHeader(Header, kw_only=True):
    """29001 WATCH. Requests what changed since revision `since` of the broker's life `boot`; 0 and "" mean everything.

    The response waits up to `wait_ms` for a change. `page` requests the next page of a response that has more.
    """

    boot: str = ""
    since: Int64 = 0
    wait_ms: Int64 = 0
    page: Int64 | None = None


class WatchResponseHeader(Header, kw_only=True):
    """`is_snapshot`: the body holds everything, because `boot` or `since` is not known any more.

    `next_page` is 0 with the last page, else the page to request next on the same connection. All pages have the same
    `revision`; what has changed after it may be in them already, and is in the changes since that revision again.
    """

    boot: str
    revision: Int64
    is_snapshot: bool
    next_page: Int64 = 0
