"""Headers of a whole broker's statistics: 315, 317."""

from __future__ import annotations

from remoting.wire.headers.typed import Header


class BrokerStatsHeader(Header, kw_only=True):
    """315. `stats_key`: a topic, `topic@group`, or the cluster's name, as `stats_name` wants it."""

    stats_name: str
    stats_key: str


class BrokerConsumeStatsHeader(Header, kw_only=True):
    """317. `is_order`: only topics that are kept in order."""

    is_order: bool = False
