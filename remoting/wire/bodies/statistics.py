"""Counts and progress of a whole broker: 315 VIEW_BROKER_STATS_DATA, 317 GET_BROKER_CONSUME_STATS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from remoting.wire.bodies.consume_stats import ConsumeStats, write_consume_stats
from remoting.wire.bodies.document import Document


class StatsItem(Document, kw_only=True):
    """`tps` a second; `avgpt` per count, which is always 1 for messages."""

    avgpt: float
    sum: int
    tps: float


class BrokerStats(Document, kw_only=True):
    """315."""

    stats_day: StatsItem
    stats_hour: StatsItem
    stats_minute: StatsItem


def write_broker_consume_stats(groups: Mapping[str, Sequence[ConsumeStats]], broker_addr: str) -> bytes:
    """Encodes the response to 317.

    By group, one `ConsumeStats` per topic, and the sums of lag and of in-flight messages.
    """
    queues = [queue for topics in groups.values() for stats in topics for queue in stats.queues.values()]
    total = sum(queue.broker_offset - queue.consumer_offset for queue in queues)
    given = sum((queue.pull_offset or queue.consumer_offset) - queue.consumer_offset for queue in queues)
    raw = [{group: [msgspec.Raw(write_consume_stats(one)) for one in topics]} for group, topics in groups.items()]
    return msgspec.json.encode(
        {"brokerAddr": broker_addr, "consumeStatsList": raw, "totalDiff": total, "totalInflightDiff": given}
    )
