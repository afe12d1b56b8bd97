"""Requests of tools and the console to one server, by its address (RocketMQ's `MQAdminExt`).

One file per subject; `admin.topics.create(address, config)` reads as it is. `requests.py` sends them all and bounds how
many are in flight; `partial.py` makes one call to many servers and keeps each one's answer or error.

Every call raises ClientError (BrokerRefused with the server's words for any answer but success, NotSupported where the
server doesn't know the request) or, when an answer cannot be read, BodyError or HeaderError. Nothing here retries or
looks for another server: that is for callers.
"""

from __future__ import annotations

from remoting.client.admin.brokers import Brokers
from remoting.client.admin.clients import Clients
from remoting.client.admin.cluster import Cluster
from remoting.client.admin.groups import Groups
from remoting.client.admin.messages import Messages
from remoting.client.admin.name_server import NameServer
from remoting.client.admin.offsets import Offsets
from remoting.client.admin.our_broker import OurBroker
from remoting.client.admin.requests import ADMIN_TIMEOUT_MS, Limits, Requests
from remoting.client.admin.resets import Resets
from remoting.client.admin.topics import Topics
from remoting.client.connections import Connections


class Admin:
    """All calls by subject. `address` is always a broker's "host:port", `namesrv` a name server's."""

    def __init__(
        self, connections: Connections, timeout_ms: int = ADMIN_TIMEOUT_MS, limits: Limits | None = None
    ) -> None:
        """Gives each request `timeout_ms`, but those that a broker relays to a client or parks."""
        requests = Requests(connections, timeout_ms, limits or Limits())
        self.cluster = Cluster(requests)
        self.name_server = NameServer(requests)
        self.brokers = Brokers(requests)
        self.topics = Topics(requests)
        self.groups = Groups(requests)
        self.clients = Clients(requests)
        self.offsets = Offsets(requests)
        self.resets = Resets(requests, self.offsets, self.topics)
        self.messages = Messages(requests)
        self.our_broker = OurBroker(requests)
