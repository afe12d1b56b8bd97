"""One client as the cluster sees it: a client id with its connections, routes and heartbeats (`MQClientInstance`).

Producers and consumers that share an instance share its connections and send one heartbeat together.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Mapping, Sequence

from remoting.client.config import ClientConfig
from remoting.client.connections import Connections, RequestHandler
from remoting.client.heartbeats import Heartbeats
from remoting.client.name_servers import NameServers
from remoting.client.routes import Routes
from remoting.closing import close_in_turn

_numbers = itertools.count()


class ClientInstance:
    """Starts with `start()` on the running loop; after `close()` no task and no socket of it is left."""

    def __init__(
        self,
        namesrv: str | Sequence[str],
        *,
        client_id: str | None = None,
        on_request: Mapping[int, RequestHandler] | None = None,
        config: ClientConfig | None = None,
    ) -> None:
        """Takes in `on_request` the handlers of requests that brokers send to clients (40, 220, 221, 307, 309 …)."""
        self.client_id = client_id or make_client_id(local_address())
        self.connections = Connections(on_request, config=config)
        self.name_servers = NameServers(namesrv, self.connections)
        self.routes = Routes(self.name_servers, config=config)
        self.heartbeats = Heartbeats(self.connections, self.routes, self.client_id, config=config)

    def start(self) -> None:
        """Starts the refresh of routes and the heartbeats."""
        self.routes.start()
        self.heartbeats.start()

    async def close(self) -> None:
        """Closes heartbeats first, so that nothing connects anew; connections last, as responses may be awaited."""
        await close_in_turn(self.heartbeats.close, self.routes.close, self.connections.close)


def make_client_id(address: str) -> str:
    """Returns `<ip>@<pid>#<ns>`, as RocketMQ's own clients have since 4.9.

    Never the same twice, not even in forked processes.
    """
    return f"{address}@{os.getpid()}#{time.time_ns()}{next(_numbers)}"


def local_address() -> str:
    """Returns this machine's address on its default route, for people who read client ids.

    Nothing is sent to find it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # TEST-NET-2: routed as any foreign address, never reached
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address
