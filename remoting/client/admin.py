"""Requests of tools and the console to one server, by its address (RocketMQ's `MQAdminExt`).

Every call raises ClientError (BrokerRefused with the server's words for any answer but success) or, when an answer
cannot be read, BodyError or HeaderError. Nothing here retries or looks for another server: that is for callers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from remoting.client.connections import Connections
from remoting.client.errors import BrokerRefused
from remoting.client.table_pages import GROUP_PAGES, TOPIC_PAGES, Paging, next_page
from remoting.wire.bodies.consume_stats import (
    CommittedOffsets,
    ConsumeStats,
    read_committed_offsets,
    read_consume_stats,
)
from remoting.wire.bodies.document import read_body, write_body
from remoting.wire.bodies.groups import (
    ConsumerConnection,
    ConsumerIds,
    GroupList,
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
)
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import ClusterInfo, TopicRouteData
from remoting.wire.bodies.running_info import ConsumerRunningInfo, read_running_info
from remoting.wire.bodies.scheduler import Agenda
from remoting.wire.bodies.topics import TopicConfig, TopicOffset, TopicTable, read_topic_stats
from remoting.wire.bodies.watch import WatchBody
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Body, Command
from remoting.wire.headers.groups import ConsumerGroupHeader, GetConsumerRunningInfoHeader, GetConsumeStatsHeader
from remoting.wire.headers.name_server import DeleteTopicInNameServerHeader
from remoting.wire.headers.offsets import (
    OffsetResponseHeader,
    QueryConsumerOffsetHeader,
    QueueHeader,
    SearchOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from remoting.wire.headers.routes import GetRouteHeader, TopicHeader
from remoting.wire.headers.scheduler import (
    SchedulerLeaseHeader,
    SchedulerLeaseResponseHeader,
    SchedulerStepHeader,
    SchedulerStepResponseHeader,
)
from remoting.wire.headers.topics import CreateTopicHeader
from remoting.wire.headers.typed import Header, read_header, write_header
from remoting.wire.headers.watch import WatchHeader, WatchResponseHeader

# `DefaultMQAdminExt`.
ADMIN_TIMEOUT_MS = 5000
# The broker itself waits 10 s for the client that it passes 307 on to.
RELAYED_TIMEOUT_MS = 12_000
# Added to the time that a parked request asks the broker to wait.
PARKED_GRACE_MS = 5000
_NO_CONSUMER = "no consumer for this group"


class Admin:
    """`address` is a broker's "host:port"; `namesrv` a name server's."""

    def __init__(self, connections: Connections, timeout_ms: int = ADMIN_TIMEOUT_MS) -> None:
        self._connections = connections
        self._timeout_ms = timeout_ms

    # the cluster

    async def cluster_info(self, namesrv: str) -> ClusterInfo:
        """Returns the clusters and brokers that a name server knows."""
        answer = await self._ask(namesrv, RequestCode.GET_BROKER_CLUSTER_INFO)
        return read_body(ClusterInfo, answer.body)

    async def route(self, namesrv: str, topic: str) -> TopicRouteData:
        """Returns a topic's route. Raises BrokerRefused (TOPIC_NOT_EXIST) where the name server has none."""
        header = GetRouteHeader(topic=topic, accept_standard_json_only=True)
        answer = await self._ask(namesrv, RequestCode.GET_ROUTEINFO_BY_TOPIC, header, about=f"topic {topic!r}")
        return read_body(TopicRouteData, answer.body)

    # topics and groups

    async def topic_table(self, address: str) -> TopicTable:
        """Returns all topics of a broker."""
        table = TopicTable()
        async for page in self._pages(address, RequestCode.GET_ALL_TOPIC_CONFIG, TOPIC_PAGES):
            part = read_body(TopicTable, page)
            table.data_version = part.data_version
            table.topic_config_table.update(part.topic_config_table)
        return table

    async def group_table(self, address: str) -> SubscriptionGroupTable:
        """Returns all groups of a broker."""
        table = SubscriptionGroupTable()
        async for page in self._pages(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, GROUP_PAGES):
            part = read_body(SubscriptionGroupTable, page)
            table.data_version = part.data_version
            table.forbidden_table.update(part.forbidden_table)
            table.subscription_group_table.update(part.subscription_group_table)
        return table

    async def topic_stats(self, address: str, topic: str) -> dict[MessageQueue, TopicOffset]:
        """Returns min and max offset of the topic's queues on a broker."""
        header = TopicHeader(topic=topic)
        answer = await self._ask(address, RequestCode.GET_TOPIC_STATS_INFO, header, about=f"topic {topic!r}")
        return read_topic_stats(answer.body)

    async def create_topic(self, address: str, config: TopicConfig) -> None:
        """Creates the topic, or changes it to `config`. `attributes` as the wire has them: "+key" → value."""
        header = CreateTopicHeader(
            topic=config.topic_name,
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            perm=config.perm,
            topic_filter_type=config.topic_filter_type,
            topic_sys_flag=config.topic_sys_flag,
            order=config.order,
            attributes=",".join(_attribute(*item) for item in config.attributes.items()) or None,
        )
        await self._ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header, about=f"topic {config.topic_name!r}")

    async def topic_config(self, address: str, topic: str) -> TopicConfig | None:
        """Returns the topic's settings on a broker; None where the broker doesn't have it."""
        try:
            answer = await self._ask(
                address, RequestCode.GET_TOPIC_CONFIG, TopicHeader(topic=topic), about=f"topic {topic!r}"
            )
        except BrokerRefused as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                # Apache's brokers of the 4 line know the whole table alone.
                return (await self.topic_table(address)).topic_config_table.get(topic)
            raise
        return read_body(TopicConfig, answer.body)

    async def delete_topic(self, address: str, topic: str) -> None:
        """Deletes the topic on a broker: its settings, every group's progress on it, and its messages."""
        header = TopicHeader(topic=topic)
        await self._ask(address, RequestCode.DELETE_TOPIC_IN_BROKER, header, about=f"topic {topic!r}")

    async def delete_topic_route(self, namesrv: str, topic: str, cluster: str) -> None:
        """Deletes the topic's route to the brokers of a cluster on one name server."""
        header = DeleteTopicInNameServerHeader(topic=topic, cluster_name=cluster)
        await self._ask(namesrv, RequestCode.DELETE_TOPIC_IN_NAMESRV, header, about=f"topic {topic!r}")

    async def groups_of_topic(self, address: str, topic: str) -> list[str]:
        """Returns the groups that subscribe to the topic now, and those that committed an offset on it once."""
        header = TopicHeader(topic=topic)
        answer = await self._ask(address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, header, about=f"topic {topic!r}")
        return read_body(GroupList, answer.body).group_list

    async def create_group(self, address: str, config: SubscriptionGroupConfig) -> None:
        """Creates the group, or changes it to `config`."""
        about = f"group {config.group_name!r}"
        code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        await self._ask(address, code, body=write_body(config), about=about)

    # members and progress of groups

    async def consumer_connection(self, address: str, group: str) -> ConsumerConnection | None:
        """Returns the members of the group that this broker knows; None when none is connected."""
        header = ConsumerGroupHeader(consumer_group=group)
        code = RequestCode.GET_CONSUMER_CONNECTION_LIST
        try:
            answer = await self._ask(address, code, header, about=f"group {group!r}")
        except BrokerRefused as error:
            if error.code == ResponseCode.CONSUMER_NOT_ONLINE:
                return None
            raise
        return read_body(ConsumerConnection, answer.body)

    async def consumer_ids(self, address: str, group: str) -> list[str]:
        """Returns the client ids of the members, in no order; empty when none is connected."""
        header = ConsumerGroupHeader(consumer_group=group)
        try:
            answer = await self._ask(address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, header, about=f"group {group!r}")
        except BrokerRefused as error:
            if error.code == ResponseCode.SYSTEM_ERROR and _NO_CONSUMER in error.remark:
                return []
            raise
        return read_body(ConsumerIds, answer.body).consumer_id_list

    async def consume_stats(self, address: str, group: str, topic: str | None = None) -> ConsumeStats:
        """Returns the progress of the queues of this broker for which the group has committed an offset."""
        header = GetConsumeStatsHeader(consumer_group=group, topic=topic)
        answer = await self._ask(address, RequestCode.GET_CONSUME_STATS, header, about=f"group {group!r}")
        return read_consume_stats(answer.body)

    async def all_offsets(self, address: str) -> CommittedOffsets:
        """Returns every committed offset of every group on a broker."""
        answer = await self._ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET)
        return read_committed_offsets(answer.body)

    async def running_info(self, address: str, group: str, client_id: str) -> ConsumerRunningInfo:
        """Returns the running info of the member `client_id`; the broker relays request and response."""
        header = GetConsumerRunningInfoHeader(consumer_group=group, client_id=client_id, jstack_enable=False)
        about = f"client {client_id!r} of group {group!r}"
        code = RequestCode.GET_CONSUMER_RUNNING_INFO
        answer = await self._ask(address, code, header, about=about, timeout_ms=RELAYED_TIMEOUT_MS)
        return read_running_info(answer.body)

    # offsets of queues

    async def max_offset(self, address: str, topic: str, queue_id: int) -> int:
        """Returns the queue offset one past the last message."""
        return await self._queue_offset(address, RequestCode.GET_MAX_OFFSET, topic, queue_id)

    async def min_offset(self, address: str, topic: str, queue_id: int) -> int:
        """Returns the queue offset of the first message that can be read."""
        return await self._queue_offset(address, RequestCode.GET_MIN_OFFSET, topic, queue_id)

    async def search_offset(self, address: str, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """Returns the queue offset of the first message stored at or after `timestamp_ms`.

        Returns the max offset when all are older.
        """
        header = SearchOffsetHeader(topic=topic, queue_id=queue_id, timestamp=timestamp_ms)
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        answer = await self._ask(address, code, header, about=f"topic {topic!r}")
        return read_header(OffsetResponseHeader, answer.ext_fields).offset

    async def query_offset(
        self, address: str, group: str, topic: str, queue_id: int, *, zero_if_not_found: bool | None = None
    ) -> int | None:
        """Returns the committed offset, the next to consume; None when the broker has none."""
        header = QueryConsumerOffsetHeader(
            consumer_group=group, topic=topic, queue_id=queue_id, set_zero_if_not_found=zero_if_not_found
        )
        about = f"group {group!r} on topic {topic!r}"
        try:
            answer = await self._ask(address, RequestCode.QUERY_CONSUMER_OFFSET, header, about=about)
        except BrokerRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return read_header(OffsetResponseHeader, answer.ext_fields).offset

    async def update_offset(self, address: str, group: str, topic: str, queue_id: int, commit_offset: int) -> None:
        """Commits a group's offset of one queue: the next to consume."""
        header = UpdateConsumerOffsetHeader(
            consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=commit_offset
        )
        about = f"group {group!r} on topic {topic!r}"
        await self._ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, header, about=about)

    # our own broker only

    async def watch(
        self, address: str, boot: str = "", since: int = 0, wait_ms: int = 0
    ) -> tuple[WatchResponseHeader, WatchBody]:
        """Returns what changed since revision `since`, all pages; waits up to `wait_ms` for a change.

        Raises BrokerRefused (REQUEST_CODE_NOT_SUPPORTED) with Apache's brokers.
        """
        header = WatchHeader(boot=boot, since=since, wait_ms=wait_ms)
        first, body = await self._watch_page(address, header)
        next_page = first.next_page
        while next_page:
            header = WatchHeader(boot=boot, since=since, page=next_page)
            further, part = await self._watch_page(address, header)
            body.add(part)
            next_page = further.next_page
        return first, body

    async def _watch_page(self, address: str, header: WatchHeader) -> tuple[WatchResponseHeader, WatchBody]:
        answer = await self._ask(address, RequestCode.WATCH, header, timeout_ms=header.wait_ms + PARKED_GRACE_MS)
        return read_header(WatchResponseHeader, answer.ext_fields), read_body(WatchBody, answer.body)

    async def scheduler_lease(
        self, address: str, driver: str, lease_ms: int, *, epoch: int = 0, wait_ms: int = 0
    ) -> tuple[SchedulerLeaseResponseHeader, Agenda]:
        """Asks for the scheduler's lease, or renews it; returns who holds it and what is waiting."""
        header = SchedulerLeaseHeader(driver=driver, epoch=epoch, lease_ms=lease_ms, wait_ms=wait_ms)
        code = RequestCode.SCHEDULER_LEASE
        answer = await self._ask(address, code, header, timeout_ms=wait_ms + PARKED_GRACE_MS)
        agenda = read_body(Agenda, answer.body) if answer.body else Agenda()
        return read_header(SchedulerLeaseResponseHeader, answer.ext_fields), agenda

    async def scheduler_step(
        self, address: str, epoch: int, kind: str, key: str, until_ms: int
    ) -> SchedulerStepResponseHeader:
        """Makes the broker carry out what is due.

        Raises BrokerRefused with SCHEDULER_EPOCH_STALE when another holds the lease.
        """
        header = SchedulerStepHeader(epoch=epoch, kind=kind, key=key, until_ms=until_ms)
        answer = await self._ask(address, RequestCode.SCHEDULER_STEP, header, about=f"{kind} {key}")
        return read_header(SchedulerStepResponseHeader, answer.ext_fields)

    # requests

    async def _ask(
        self,
        address: str,
        code: int,
        header: Header | None = None,
        *,
        body: Body = b"",
        about: str = "",
        timeout_ms: int | None = None,
    ) -> Command:
        fields = write_header(header) if header is not None else {}
        request = Command(code=code, ext_fields=fields, body=body)
        return await self._answer(address, request, about, timeout_ms)

    async def _answer(self, address: str, request: Command, about: str, timeout_ms: int | None = None) -> Command:
        answer = await self._connections.request(address, request, timeout_ms or self._timeout_ms)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerRefused(address, request.code, answer.code, answer.remark, about)
        return answer

    async def _queue_offset(self, address: str, code: int, topic: str, queue_id: int) -> int:
        header = QueueHeader(topic=topic, queue_id=queue_id)
        answer = await self._ask(address, code, header, about=f"topic {topic!r}")
        return read_header(OffsetResponseHeader, answer.ext_fields).offset

    async def _pages(self, address: str, code: int, paging: Paging) -> AsyncIterator[Body]:
        """Yields the bodies of all pages; one for servers that do not page."""
        fields: dict[str, str] | None = {}
        while fields is not None:
            answer = await self._answer(address, Command(code=code, ext_fields=fields), "")
            yield answer.body
            fields = next_page(paging, fields, answer)


def _attribute(key: str, value: str) -> str:
    """Returns one attribute as the wire has it: `+key=value`, or `-key` for one to be removed."""
    return key if key.startswith("-") else f"{key}={value}"
