"""Counts and progress of a whole broker: 315 VIEW_BROKER_STATS_DATA, 317 GET_BROKER_CONSUME_STATS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from remoting.wire.bodies.consume_stats import ConsumeStats, consume_stats_from, write_consume_stats
from remoting.wire.bodies.document import Document, convert, read_object
from remoting.wire.command import Body


class StatsItem(Document, kw_only=True):
    """`tps` a second; `avgpt` per count, which is always 1 for messages."""

    avgpt: float = 0.0
    sum: int = 0
    tps: float = 0.0


class BrokerStats(Document, kw_only=True):
    """315."""

    stats_day: StatsItem = msgspec.field(default_factory=StatsItem)
    stats_hour: StatsItem = msgspec.field(default_factory=StatsItem)
    stats_minute: StatsItem = msgspec.field(default_factory=StatsItem)


class BrokerConsumeStats(msgspec.Struct, kw_only=True):
    """317: by group one `ConsumeStats` per topic; the sums of lag and of in-flight messages over all of them."""

    groups: dict[str, list[ConsumeStats]] = {}
    total_diff: int = 0
    total_inflight_diff: int = 0


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


def read_broker_consume_stats(body: Body) -> BrokerConsumeStats:
    """Reads the response to 317: a list of maps, each of one group or of several. Raises BodyError."""
    value = read_object("ConsumeStatsList", body)
    groups: dict[str, list[ConsumeStats]] = {}
    for entry in convert(list[dict[str, list[dict[str, object]]]], value.get("consumeStatsList", [])):
        for group, topics in entry.items():
            groups.setdefault(group, []).extend(consume_stats_from(topic) for topic in topics)
    return BrokerConsumeStats(
        groups=groups,
        total_diff=convert(int, value.get("totalDiff", 0)),
        total_inflight_diff=convert(int, value.get("totalInflightDiff", 0)),
    )
