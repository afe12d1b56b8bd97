"""What brokers and members tell of their run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from remoting.client.admin import Admin
from remoting.client.errors import BrokerRefused, RequestTimedOut
from remoting.wire.bodies.running_info import PROP_SUSPENDED
from remoting.wire.failures import LATEST_FAILURES, LatestFailure, read_latest

# The counts of messages stored and given out, which RocketMQ keeps under the cluster's name.
PUT = "BROKER_PUT_NUMS"
GET = "BROKER_GET_NUMS"


@dataclass(frozen=True, slots=True)
class Runtime:
    """`figures` by Apache's names; rates a second over the last minute, None where nothing was counted for a day."""

    figures: dict[str, str]
    put_per_s: float | None
    get_per_s: float | None


async def runtime_of(admin: Admin, address: str, cluster: str) -> Runtime:
    """Returns what the broker says (three requests: 28, and 315 twice). `cluster` is RocketMQ's name of its cluster."""
    figures, put, got = await asyncio.gather(
        admin.brokers.runtime_info(address),
        admin.brokers.stats(address, PUT, cluster),
        admin.brokers.stats(address, GET, cluster),
    )
    return Runtime(
        figures,
        put.stats_minute.tps if put is not None else None,
        got.stats_minute.tps if got is not None else None,
    )


class StatsKey(NamedTuple):
    """One of the broker's statistics (315): its name, as "TOPIC_PUT_NUMS", and a topic or "topic@group"."""

    name: str
    key: str


async def rate_of(admin: Admin, address: str, statistic: StatsKey) -> float | None:
    """Returns the rate a second over the last minute; None where the broker counted nothing."""
    try:
        stats = await admin.brokers.stats(address, *statistic)
    except BrokerRefused:
        return None
    return stats.stats_minute.tps if stats is not None else None


# How often RocketMQ's clients have a message retried where nobody says otherwise.
RECONSUME_TIMES_DEFAULT = 16
# Of the reasons why a member consumes nothing now.
SUSPENDED_CHARS_MAX = 500


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """What a member says of itself.

    `statuses`: topic → the figures of its consuming, named as `remoting.wire.bodies.running_info.ConsumeStatus` has
    them. `suspended`: why it consumes nothing now, "" while it does; `failures`: its latest, the last one first. Both
    are told by members of ours alone, which `tells_failures`. `reconsume_times_max`: how often it has a
    message retried; None where it does not say.
    """

    statuses: dict[str, dict[str, float]]
    suspended: str = ""
    failures: tuple[LatestFailure, ...] = ()
    tells_failures: bool = False
    reconsume_times_max: int | None = None


async def member_status(admin: Admin, address: str, group: str, client_id: str) -> MemberStatus | None:
    """Returns what a member says of its consuming (307, relayed by the broker); None where it doesn't say."""
    try:
        info = await admin.clients.running_info(address, group, client_id)
    except (BrokerRefused, RequestTimedOut):
        return None
    return MemberStatus(
        {topic: msgspec.structs.asdict(status) for topic, status in info.statuses.items()},
        info.properties.get(PROP_SUSPENDED, "").replace("\0", "")[:SUSPENDED_CHARS_MAX],
        tuple(read_latest(info.properties.get(LATEST_FAILURES, ""))),
        LATEST_FAILURES in info.properties,
        _retries(info.properties.get("maxReconsumeTimes", "")),
    )


def _retries(text: str) -> int | None:
    """Returns what a client says of its retries; -1 is its default (`DefaultMQPushConsumer`)."""
    if text == "-1":
        return RECONSUME_TIMES_DEFAULT
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None
