"""Headers of a whole broker's statistics: 315, 317."""

from __future__ import annotations

from remoting.wire.headers.typed import Header


class BrokerStatsHeader(Header, kw_only=True):
    """315 VIEW_BROKER_STATS_DATA.

    `stats_key`: a topic, `topic@group`, or the cluster's name, depending on `stats_name`.
    """

    stats_name: str
    stats_key: str


class BrokerConsumeStatsHeader(Header, kw_only=True):
    """317 GET_BROKER_CONSUME_STATS. `is_order`: only topics that are consumed orderly."""

    is_order: bool = False
