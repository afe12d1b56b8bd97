"""A broker and name server that say what a test tells them to, over real sockets, on a thread of their own.

As `WATCHED` it is like ours: `tell` changes what a watch answers. As `POLLED` it is like Apache's: it refuses the watch
and answers 21, 201, 43, 202, 203 and 11 from `tables`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from remoting.connection import Connection
from remoting.server import Server
from remoting.wire.bodies.consume_stats import CommittedOffsets, write_committed_offsets
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import ConsumerConnection, SubscriptionGroupConfig, SubscriptionGroupTable
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import BrokerData, ClusterInfo
from remoting.wire.bodies.topics import TopicConfig, TopicOffset, TopicTable, write_topic_stats
from remoting.wire.bodies.watch import WatchBody
from remoting.wire.codes import RequestCode, ResponseCode, request_name
from remoting.wire.command import Command, response
from remoting.wire.headers.pull import PullMessageHeader, PullMessageResponseHeader
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.headers.watch import WatchHeader, WatchResponseHeader
from remoting.wire.stored_message import StoredMessage, encode_message
from tests.support.waiting import WITHIN_S

CLUSTER_NAME = "DefaultCluster"
BROKER_NAME = "broker-a"
BOOT = "boot-1"


@dataclass
class Tables:
    """What a polled broker knows. `members`: group → connection; a group that is not in it is offline."""

    topics: dict[str, TopicConfig] = field(default_factory=dict)
    groups: dict[str, SubscriptionGroupConfig] = field(default_factory=dict)
    committed: CommittedOffsets = field(default_factory=dict)
    ends: dict[MessageQueue, TopicOffset] = field(default_factory=dict)
    members: dict[str, ConsumerConnection] = field(default_factory=dict)
    # By topic, queue id and queue offset.
    stored_at_ms: dict[tuple[str, int, int], int] = field(default_factory=dict)
    # By the same: what is answered instead of a message; None: no answer comes.
    odd_answers: dict[tuple[str, int, int], bytes | None] = field(default_factory=dict)


class ScriptedBroker:
    """Starts on entering. `address` is name server and broker in one; `asked` names the requests so far."""

    def __init__(self, *, is_watched: bool, name: str = BROKER_NAME) -> None:
        self.name = name
        self.tables = Tables()
        self.asked: list[str] = []
        self.address = ""
        self.port = 0
        self.connection_count = 0
        # More masters than this one, for those tests that need a cluster of several.
        self.further_masters: dict[str, str] = {}
        self._is_watched = is_watched
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server = Server(self)
        self._boot = BOOT
        self._bodies: list[WatchBody] = []
        self._parked: list[tuple[Connection, Command, asyncio.TimerHandle]] = []

    def __enter__(self) -> ScriptedBroker:
        self._thread.start()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self) -> None:
        """Again on the same port after `stop`."""
        self._server = Server(self)
        self.port = self._call(lambda: self._server.listen("127.0.0.1", self.port))
        self.address = f"127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._call(self._server.close)

    def tell(self, body: WatchBody) -> int:
        """What the next watch answers; the new revision."""

        async def add() -> None:
            body.broker_name, body.broker_addr = self.name, self.address
            self._bodies.append(body)
            for connection, request, timer in self._parked:
                timer.cancel()
                connection.send(self._watch_answer(request))
            self._parked.clear()

        self._call(add)
        return len(self._bodies)

    def reboot(self, body: WatchBody) -> None:
        """Another life: what it says now is `body`, whatever was read before."""
        body.broker_name, body.broker_addr = self.name, self.address
        self._bodies = [body]
        self._boot = "boot-2"

    # Handler

    def connected(self, connection: Connection) -> None:
        self.connection_count += 1

    def disconnected(self, connection: Connection, error: Exception | None) -> None:
        self.connection_count -= 1
        self._parked = [parked for parked in self._parked if parked[0] is not connection]

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        for request in requests:
            self.asked.append(request_name(request.code))
            if request.code == RequestCode.WATCH and self._is_watched:
                self._watch(connection, request)
            elif (answer := self._answer(request)) is not None:
                connection.send(answer)

    def _watch(self, connection: Connection, request: Command) -> None:
        header = read_header(WatchHeader, request.ext_fields)
        if header.boot != self._boot or header.since < len(self._bodies) or not header.wait_ms:
            connection.send(self._watch_answer(request))
            return
        timer = self._loop.call_later(header.wait_ms / 1000, lambda: connection.send(self._watch_answer(request)))
        self._parked.append((connection, request, timer))

    def _watch_answer(self, request: Command) -> Command:
        header = read_header(WatchHeader, request.ext_fields)
        is_snapshot = header.boot != self._boot
        is_news = header.since < len(self._bodies) or is_snapshot
        body = self._bodies[-1] if is_news else empty_body(self.address, self.name)
        fields = WatchResponseHeader(boot=self._boot, revision=len(self._bodies), is_snapshot=is_snapshot)
        return response(request, ResponseCode.SUCCESS, ext_fields=write_header(fields), body=write_body(body))

    def _answer(self, request: Command) -> Command | None:
        answers: dict[int, Callable[[Command], bytes | None]] = {
            RequestCode.GET_BROKER_CLUSTER_INFO: lambda _: write_body(self._cluster_info()),
            RequestCode.GET_ALL_TOPIC_CONFIG: lambda _: write_body(TopicTable(topic_config_table=self.tables.topics)),
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: lambda _: write_body(
                SubscriptionGroupTable(subscription_group_table=self.tables.groups)
            ),
            RequestCode.GET_ALL_CONSUMER_OFFSET: lambda _: write_committed_offsets(self.tables.committed),
            RequestCode.GET_TOPIC_STATS_INFO: self._topic_stats,
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self._members,
        }
        if request.code == RequestCode.PULL_MESSAGE:
            return self._pulled(request)
        answer = answers.get(request.code)
        if answer is None:
            remark = f" request type {request.code} not supported"
            return response(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
        body = answer(request)
        if body is None:
            return response(request, ResponseCode.CONSUMER_NOT_ONLINE, "not online")
        return response(request, ResponseCode.SUCCESS, body=body)

    def _cluster_info(self) -> ClusterInfo:
        masters = {self.name: self.address} | self.further_masters
        return ClusterInfo(
            broker_addr_table={
                name: BrokerData(broker_addrs={"0": address}, broker_name=name, cluster=CLUSTER_NAME)
                for name, address in masters.items()
            },
            cluster_addr_table={CLUSTER_NAME: list(masters)},
        )

    def _pulled(self, request: Command) -> Command | None:
        asked = read_header(PullMessageHeader, request.ext_fields)
        offset = asked.queue_offset
        at = (asked.topic, asked.queue_id, offset)
        stored_at_ms, odd = self.tables.stored_at_ms.get(at), self.tables.odd_answers.get(at, b"")
        if odd is None:
            return None
        place = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=offset + 1, min_offset=0, max_offset=offset + 1
        )
        if odd:
            return response(request, ResponseCode.SUCCESS, ext_fields=write_header(place), body=odd)
        if stored_at_ms is None:
            return response(request, ResponseCode.PULL_NOT_FOUND, ext_fields=write_header(place))
        message = StoredMessage(
            topic=asked.topic, queue_id=asked.queue_id, queue_offset=offset, store_timestamp_ms=stored_at_ms
        )
        return response(request, ResponseCode.SUCCESS, ext_fields=write_header(place), body=encode_message(message))

    def _topic_stats(self, request: Command) -> bytes:
        topic = request.ext_fields["topic"]
        return write_topic_stats({queue: end for queue, end in self.tables.ends.items() if queue.topic == topic})

    def _members(self, request: Command) -> bytes | None:
        connection = self.tables.members.get(request.ext_fields["consumerGroup"])
        return write_body(connection) if connection else None

    def _call(self, make: Callable[[], object]) -> object:
        """Runs `make()`'s coroutine on the broker's thread."""
        return asyncio.run_coroutine_threadsafe(make(), self._loop).result(WITHIN_S)  # type: ignore[arg-type]


def empty_body(address: str = "127.0.0.1:1", name: str = BROKER_NAME) -> WatchBody:
    return WatchBody(
        now_ms=1_700_000_000_000,
        cluster=CLUSTER_NAME,
        broker_name=name,
        broker_addr=address,
        version=479,
    )
