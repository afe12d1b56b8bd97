"""Counts what is asked of brokers and name servers, and what that took."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from remoting.client.config import ClientConfig
from remoting.client.connections import REQUEST_TIMEOUT_MS, Connections
from remoting.client.errors import ClientError
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command


@dataclass(slots=True)
class Cost:
    """As the fields of `mqadmin.clusters.models.RequestCost`."""

    request_count: int = 0
    error_count: int = 0
    seconds: float = 0.0
    byte_count: int = 0


class Costs:
    """Of one cluster, by the server's address, since they were taken last."""

    def __init__(self) -> None:
        self._by_address: dict[str, Cost] = {}

    def of(self, address: str) -> Cost:
        return self._by_address.setdefault(address, Cost())

    def take(self) -> dict[str, Cost]:
        """Returns what was counted, and begins anew."""
        taken, self._by_address = self._by_address, {}
        return taken


# What is sent to a machine that does not answer is given up after that: nothing of a process that died arrives later.
UNACKNOWLEDGED_S = 10.0


class CountedConnections(Connections):
    """Counts requests into `costs`."""

    def __init__(self, costs: Costs) -> None:
        super().__init__(config=ClientConfig(unacknowledged_s=UNACKNOWLEDGED_S))
        self._costs = costs
        self.request_count = 0

    async def request(self, address: str, command: Command, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Command:
        self.request_count += 1
        self._costs.of(address).request_count += 1
        began_s = time.monotonic()
        try:
            answer = await super().request(address, command, timeout_ms)
        except ClientError:
            self._costs.of(address).error_count += 1
            raise
        except asyncio.CancelledError:
            # The round that it was asked for is over; a watch is left when nobody follows any more.
            self._costs.of(address).error_count += command.code != RequestCode.WATCH
            raise
        # Looked up again: what was counted may have been taken while the broker held a watch.
        cost = self._costs.of(address)
        cost.byte_count += len(answer.body)
        if command.code != RequestCode.WATCH:
            cost.seconds += time.monotonic() - began_s
        return answer
