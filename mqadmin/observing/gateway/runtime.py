"""What a broker tells of its run: figures of the whole broker, for `/metrics`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from remoting.client.admin import Admin

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
