"""The name servers of a cluster.

Requests go to one until it fails, then to the next (RocketMQ's `NettyRemotingClient`).
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Sequence

from remoting.client.connections import REQUEST_TIMEOUT_MS, Connections
from remoting.client.errors import ClientError, NotConnected, RequestTimedOut
from remoting.wire.command import Command

logger = logging.getLogger(__name__)


class NameServersUnreachable(ClientError, ConnectionError):
    """Raised when no name server answers; `failures` has one error per server that was tried."""

    def __init__(self, failures: Sequence[Exception]) -> None:
        reasons = "; ".join(str(failure) for failure in failures)
        super().__init__(f"no name server answers ({reasons}): start one, or correct the address")
        self.failures = tuple(failures)


class NameServers:
    """Sends requests to one of several name servers.

    `addresses`: "host:port;host:port" (a comma or a blank separates as well), or the addresses in a list. The one at
    `first_index` is preferred at first; None chooses at random.
    """

    def __init__(
        self, addresses: str | Sequence[str], connections: Connections, *, first_index: int | None = None
    ) -> None:
        """Raises ValueError when no address is given."""
        names = re.split(r"[;,\s]+", addresses) if isinstance(addresses, str) else addresses
        self.addresses = tuple(dict.fromkeys(name for name in names if name))
        if not self.addresses:
            raise ValueError("no name server address: give one as host:port")
        self._connections = connections
        # At random, so that clients spread over the servers, as RocketMQ's do.
        self._preferred = random.randrange(len(self.addresses)) if first_index is None else first_index

    def __str__(self) -> str:
        return ";".join(self.addresses)

    async def request(self, command: Command, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Command:
        """Returns the first response, whatever its code; each server gets `timeout_ms`.

        Raises NameServersUnreachable.
        """
        failures: list[Exception] = []
        first = self._preferred
        for step in range(len(self.addresses)):
            index = (first + step) % len(self.addresses)
            try:
                answer = await self._connections.request(self.addresses[index], command, timeout_ms)
            except (NotConnected, RequestTimedOut) as error:
                failures.append(error)
                continue
            if failures:
                logger.warning("name server %s is used now: %s", self.addresses[index], failures[-1])
                self._preferred = index
            return answer
        raise NameServersUnreachable(failures)
