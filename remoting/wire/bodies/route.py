"""Routes of the name server: 105 (TopicRouteData) and 106 (ClusterInfo)."""

from __future__ import annotations

from remoting.wire.bodies.document import Document

MASTER_ID = "0"


class BrokerData(Document, kw_only=True):
    """`broker_addrs`: broker id as text → "host:port"; "0" is the master."""

    broker_addrs: dict[str, str]
    broker_name: str
    cluster: str = ""
    enable_acting_master: bool = False

    @property
    def master_addr(self) -> str | None:
        """Returns the master's "host:port"; None while the broker has no master."""
        return self.broker_addrs.get(MASTER_ID)


class QueueData(Document, kw_only=True):
    """Producers use `write_queue_nums` queues, consumers `read_queue_nums`; `perm`: 4 read, 2 write, 1 inherit."""

    broker_name: str
    perm: int
    read_queue_nums: int
    topic_sys_flag: int = 0
    write_queue_nums: int


class TopicRouteData(Document, kw_only=True):
    """The response to GET_ROUTEINFO_BY_TOPIC (105)."""

    broker_datas: list[BrokerData] = []  # noqa: RUF012 - msgspec copies a default per instance
    filter_server_table: dict[str, list[str]] = {}  # noqa: RUF012
    order_topic_conf: str | None = None
    queue_datas: list[QueueData] = []  # noqa: RUF012

    def broker(self, broker_name: str) -> BrokerData | None:
        """Returns the broker of that name; None where the route has none."""
        return next((data for data in self.broker_datas if data.broker_name == broker_name), None)


class ClusterInfo(Document, kw_only=True):
    """The response to GET_BROKER_CLUSTER_INFO (106): brokers by name, broker names by cluster."""

    broker_addr_table: dict[str, BrokerData] = {}  # noqa: RUF012
    cluster_addr_table: dict[str, list[str]] = {}  # noqa: RUF012


class TopicList(Document, kw_only=True):
    """206, 224, 304, 305, 343."""

    broker_addr: str | None = None
    topic_list: list[str] = []  # noqa: RUF012


class BrokerMemberGroup(Document, kw_only=True):
    """`broker_addrs`: broker id as text → "host:port"."""

    broker_addrs: dict[str, str] = {}  # noqa: RUF012
    broker_name: str
    cluster: str


class BrokerMemberGroupAnswer(Document, kw_only=True):
    """901 GET_BROKER_MEMBER_GROUP."""

    broker_member_group: BrokerMemberGroup
