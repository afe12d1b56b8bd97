"""A name server and broker in the test's own event loop: real sockets, messages in lists, faults at will.

Knows what a push consumer and a producer ask, and nothing more. Delays are over at once unless `holds_retries`.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable

import msgspec

from broker.engine.groups.queue_locks import QueueLocks
from remoting.connection import Connection, Handler
from remoting.server import Server
from remoting.wire.batch import decode_batch
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import ConsumerIds
from remoting.wire.bodies.heartbeat import SubscriptionData, read_heartbeat
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.queue_locks import read_lock_request, write_locked
from remoting.wire.bodies.route import BrokerData, QueueData, TopicRouteData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.groups import SendMessageBackHeader
from remoting.wire.headers.offsets import SearchOffsetHeader, UpdateConsumerOffsetHeader
from remoting.wire.headers.pull import (
    SUBSCRIPTION_FLAG,
    SUSPEND_FLAG,
    PullMessageHeader,
    PullMessageResponseHeader,
)
from remoting.wire.headers.send import SendMessageHeaderV2, SendMessageResponseHeader
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.names import AUTO_CREATE_TOPIC, dlq_topic, is_retry_topic, retry_topic
from remoting.wire.properties import Property, decode_properties, encode_properties
from remoting.wire.stored_message import StoredMessage, encode_message
from remoting.wire.tags import parse_tags, tags_code

BROKER_NAME = "memory"
CLUSTER = "memory"
PULL_MESSAGES_MAX = 32

Answer = Command | None
# Called before a request is handled; a command returned is the answer instead.
Fault = Callable[[Command], Answer]


class MemoryBroker(Handler[Connection]):
    """`async with MemoryBroker() as broker:` listens on a free port, which is `address` and `namesrv`."""

    def __init__(self) -> None:
        self.queues: dict[MessageQueue, list[StoredMessage]] = {}
        self.first_offsets: dict[MessageQueue, int] = defaultdict(int)
        self.offsets: dict[tuple[str, MessageQueue], int] = {}
        self.members: dict[str, dict[str, Connection]] = defaultdict(dict)
        self.subscriptions: dict[str, dict[str, SubscriptionData]] = defaultdict(dict)
        self.message_models: dict[str, str] = {}
        self.connections: list[Connection] = []
        self.held_retries: list[StoredMessage] = []
        self.holds_retries = False
        self._cut_off: set[str] = set()
        self.faults: dict[int, Fault] = {}
        self.seen: list[tuple[int, dict[str, str]]] = []
        self.locks = QueueLocks()
        self.address = ""
        self._server = Server(self)
        self._held: dict[MessageQueue, list[tuple[Connection, Command, asyncio.TimerHandle]]] = defaultdict(list)
        self._log_offset = 0
        self._handlers: dict[int, Callable[[Connection, Command], Answer]] = {
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
            RequestCode.HEART_BEAT: self._heartbeat,
            RequestCode.UNREGISTER_CLIENT: self._unregister,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._member_list,
            RequestCode.QUERY_CONSUMER_OFFSET: self._query_offset,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._update_offset,
            RequestCode.GET_MAX_OFFSET: self._max_offset,
            RequestCode.GET_MIN_OFFSET: self._min_offset,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._search_offset,
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.LITE_PULL_MESSAGE: self._pull,
            RequestCode.CONSUMER_SEND_MSG_BACK: self._send_back,
            RequestCode.SEND_MESSAGE_V2: self._send,
            RequestCode.SEND_BATCH_MESSAGE: self._send_batch,
            RequestCode.LOCK_BATCH_MQ: self._lock,
            RequestCode.UNLOCK_BATCH_MQ: self._unlock,
        }

    async def __aenter__(self) -> MemoryBroker:
        self.address = f"127.0.0.1:{await self._server.listen('127.0.0.1', 0)}"
        return self

    async def __aexit__(self, *_: object) -> None:
        for held in self._held.values():
            for _connection, _request, timer in held:
                timer.cancel()
        await self._server.close()

    @property
    def namesrv(self) -> str:
        return self.address

    # what tests do to it

    def create_topic(self, topic: str, queue_count: int = 4) -> list[MessageQueue]:
        made = [MessageQueue(topic, BROKER_NAME, queue_id) for queue_id in range(queue_count)]
        for queue in made:
            self.queues.setdefault(queue, [])
        return made

    def put(self, topic: str, *bodies: bytes, tags: str | None = None, queue_id: int | None = None) -> None:
        """Bodies go round the topic's queues, or all into `queue_id`."""
        queues = [queue for queue in self.queues if queue.topic == topic]
        properties = encode_properties({Property.TAGS: tags}) if tags else ""
        for number, body in enumerate(bodies):
            queue = queues[number % len(queues) if queue_id is None else queue_id]
            self._store(queue, StoredMessage(topic=topic, queue_id=0, body=body, properties_text=properties))

    def max_offset(self, queue: MessageQueue) -> int:
        return self.first_offsets[queue] + len(self.queues.get(queue, ()))

    def owners(self, topic: str) -> int:
        """Queues of the topic on which a pull is held now."""
        return sum(1 for queue, held in self._held.items() if held and queue.topic == topic)

    def notify(self, group: str) -> None:
        for connection in self.members[group].values():
            fields = {"consumerGroup": group}
            connection.requester.send_oneway(Command(code=RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, ext_fields=fields))

    def cut_off(self, client_id: str) -> None:
        """Breaks the member's connection, and every later one that it sends a heartbeat on."""
        self._cut_off.add(client_id)
        for members in self.members.values():
            if client_id in members:
                members[client_id].abort()

    async def ask_member(self, group: str, client_id: str, request: Command) -> Command:
        # Generous: on a machine that stands still for seconds the time-out would come before the answer that is there.
        return await self.members[group][client_id].request(request, 60_000)

    def release_retries(self) -> None:
        """The delays of all held retries are over."""
        held, self.held_retries = self.held_retries, []
        for message in held:
            self._store(self._retry_queue(message.topic), message)

    # remoting.connection.Handler

    def connected(self, connection: Connection) -> None:
        self.connections.append(connection)

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        for request in requests:
            self.seen.append((request.code, request.ext_fields))
            fault = self.faults.get(request.code)
            answer = fault(request) if fault else None
            answer = answer or self._handlers[request.code](connection, request)
            if answer is not None and not request.is_oneway:
                connection.send(answer)

    def disconnected(self, connection: Connection, error: Exception | None) -> None:
        self.connections.remove(connection)
        for held in self._held.values():
            held[:] = [entry for entry in held if entry[0] is not connection]
        for group, members in self.members.items():
            gone = [client_id for client_id, its in members.items() if its is connection]
            for client_id in gone:
                del members[client_id]
            if gone:
                self.notify(group)

    # requests

    def _route(self, connection: Connection, request: Command) -> Command:
        topic = request.ext_fields["topic"]
        count = sum(1 for queue in self.queues if queue.topic == topic) or int(topic == AUTO_CREATE_TOPIC)
        if not count:
            return response(request, ResponseCode.TOPIC_NOT_EXIST, "no such topic")
        route = TopicRouteData(
            broker_datas=[BrokerData(broker_addrs={"0": self.address}, broker_name=BROKER_NAME, cluster=CLUSTER)],
            queue_datas=[QueueData(broker_name=BROKER_NAME, perm=6, read_queue_nums=count, write_queue_nums=count)],
        )
        return response(request, ResponseCode.SUCCESS, body=write_body(route))

    def _heartbeat(self, connection: Connection, request: Command) -> Answer:
        data = read_heartbeat(request.body)
        if data.client_id in self._cut_off:
            connection.abort()
            return None
        for consumer in data.consumer_data_set:
            group = consumer.group_name
            self.create_topic(retry_topic(group), 1)
            self.subscriptions[group] = {item.topic: item for item in consumer.subscription_data_set}
            self.message_models[group] = consumer.message_model
            is_new = self.members[group].get(data.client_id) is not connection
            self.members[group][data.client_id] = connection
            if is_new:
                self.notify(group)
        return response(request, ResponseCode.SUCCESS)

    def _unregister(self, connection: Connection, request: Command) -> Command:
        group = request.ext_fields.get("consumerGroup")
        if group is not None:
            self.members[group].pop(request.ext_fields["clientID"], None)
            self.notify(group)
        return response(request, ResponseCode.SUCCESS)

    def _member_list(self, connection: Connection, request: Command) -> Command:
        members = self.members[request.ext_fields["consumerGroup"]]
        if not members:
            return response(request, ResponseCode.SYSTEM_ERROR, "no consumer for this group, x")
        return response(request, ResponseCode.SUCCESS, body=write_body(ConsumerIds(consumer_id_list=list(members))))

    def _query_offset(self, connection: Connection, request: Command) -> Command:
        header = read_header(UpdateConsumerOffsetHeader, request.ext_fields)
        stored = self.offsets.get((header.consumer_group, _queue(header.topic, header.queue_id)))
        if stored is None:
            return response(request, ResponseCode.QUERY_NOT_FOUND)
        return response(request, ResponseCode.SUCCESS, ext_fields={"offset": str(stored)})

    def _update_offset(self, connection: Connection, request: Command) -> Command:
        header = read_header(UpdateConsumerOffsetHeader, request.ext_fields)
        self.offsets[header.consumer_group, _queue(header.topic, header.queue_id)] = header.commit_offset or 0
        return response(request, ResponseCode.SUCCESS)

    def _max_offset(self, connection: Connection, request: Command) -> Command:
        queue = _queue(request.ext_fields["topic"], int(request.ext_fields["queueId"]))
        return response(request, ResponseCode.SUCCESS, ext_fields={"offset": str(self.max_offset(queue))})

    def _min_offset(self, connection: Connection, request: Command) -> Command:
        queue = _queue(request.ext_fields["topic"], int(request.ext_fields["queueId"]))
        return response(request, ResponseCode.SUCCESS, ext_fields={"offset": str(self.first_offsets[queue])})

    def _search_offset(self, connection: Connection, request: Command) -> Command:
        header = read_header(SearchOffsetHeader, request.ext_fields)
        messages = self.queues[_queue(header.topic, header.queue_id)]
        later = [message.queue_offset for message in messages if message.store_timestamp_ms >= header.timestamp]
        offset = later[0] if later else len(messages)
        return response(request, ResponseCode.SUCCESS, ext_fields={"offset": str(offset)})

    def _pull(self, connection: Connection, request: Command) -> Answer:
        header = read_header(PullMessageHeader, request.ext_fields)
        queue = _queue(header.topic, header.queue_id)
        if header.sys_flag & 1:
            self.offsets[header.consumer_group, queue] = header.commit_offset
        if self._wanted(header) is None:
            return response(request, ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist")
        answer = self._look(request, header, queue)
        if answer is not None:
            return answer
        if not header.sys_flag & SUSPEND_FLAG:
            return self._pull_answer(request, queue, ResponseCode.PULL_NOT_FOUND, header.queue_offset)
        wait_s = header.suspend_timeout_millis / 1000
        timer = asyncio.get_running_loop().call_later(wait_s, self._time_out, queue, request)
        self._held[queue].append((connection, request, timer))
        return None

    def _wanted(self, header: PullMessageHeader) -> set[int] | None:
        """Hashes of the tags that are subscribed, empty for all; None without a subscription."""
        if header.sys_flag & SUBSCRIPTION_FLAG:
            return set(parse_tags(header.subscription).codes)
        told = self.subscriptions[header.consumer_group].get(header.topic)
        return None if told is None else set() if told.sub_string == "*" else set(told.code_set)

    def _look(self, request: Command, header: PullMessageHeader, queue: MessageQueue) -> Answer:
        first, end = self.first_offsets[queue], self.max_offset(queue)
        offset = header.queue_offset
        if not first <= offset <= end:
            return self._pull_answer(request, queue, ResponseCode.PULL_OFFSET_MOVED, first if offset < first else end)
        found = self.queues[queue][offset - first :][: min(PULL_MESSAGES_MAX, header.max_msg_nums)]
        wanted = self._wanted(header)
        if not found or wanted is None:
            return None
        matching = [message for message in found if not wanted or tags_code(message.tags) in wanted]
        code = ResponseCode.SUCCESS if matching else ResponseCode.PULL_RETRY_IMMEDIATELY
        return self._pull_answer(request, queue, code, offset + len(found), matching)

    def _pull_answer(
        self,
        request: Command,
        queue: MessageQueue,
        code: int,
        next_offset: int,
        found: list[StoredMessage] | None = None,
    ) -> Command:
        header = PullMessageResponseHeader(
            suggest_which_broker_id=0,
            next_begin_offset=next_offset,
            min_offset=self.first_offsets[queue],
            max_offset=self.max_offset(queue),
        )
        body = b"".join(encode_message(message) for message in found or ())
        return response(request, code, ext_fields=write_header(header), body=body)

    def _time_out(self, queue: MessageQueue, request: Command) -> None:
        for entry in list(self._held[queue]):
            if entry[1] is request:
                self._held[queue].remove(entry)
                offset = int(request.ext_fields["queueOffset"])
                entry[0].send(self._pull_answer(request, queue, ResponseCode.PULL_NOT_FOUND, offset))

    def _send_back(self, connection: Connection, request: Command) -> Command:
        header = read_header(SendMessageBackHeader, request.ext_fields)
        every = (message for messages in self.queues.values() for message in messages)
        failed = next((message for message in every if message.commit_log_offset == header.offset), None)
        if failed is None:
            return response(request, ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {header.offset}")
        properties = dict(failed.properties)
        properties.setdefault(Property.RETRY_TOPIC, failed.topic)
        properties.setdefault(Property.ORIGIN_MESSAGE_ID, failed.offset_message_id)
        self._store_retry(header.group, failed, properties, failed.reconsume_times, header.max_reconsume_times or 16)
        return response(request, ResponseCode.SUCCESS)

    def _store_retry(
        self, group: str, failed: StoredMessage, properties: dict[str, str], times: int, times_max: int
    ) -> None:
        is_dead = times >= times_max
        topic = dlq_topic(group) if is_dead else retry_topic(group)
        again = msgspec.structs.replace(
            failed, topic=topic, queue_id=0, reconsume_times=times + 1, properties_text=encode_properties(properties)
        )
        if self.holds_retries and not is_dead:
            self.held_retries.append(again)
        else:
            self._store(self._retry_queue(topic), again)

    def _lock(self, connection: Connection, request: Command) -> Command:
        wanted = read_lock_request(request.body)
        granted = self.locks.lock(wanted.consumer_group, wanted.queues, wanted.client_id)
        return response(request, ResponseCode.SUCCESS, body=write_locked(granted))

    def _unlock(self, connection: Connection, request: Command) -> Command:
        held = read_lock_request(request.body)
        self.locks.unlock(held.consumer_group, held.queues, held.client_id)
        return response(request, ResponseCode.SUCCESS)

    def _retry_queue(self, topic: str) -> MessageQueue:
        return self.create_topic(topic, 1)[0]

    def _send(self, connection: Connection, request: Command) -> Command:
        header = read_header(SendMessageHeaderV2, request.ext_fields)
        times, times_max = header.reconsume_times or 0, header.max_reconsume_times
        if is_retry_topic(header.topic) and times_max is not None and times > times_max:
            header.topic, header.queue_id = header.topic.replace("%RETRY%", "%DLQ%"), 0
            self.create_topic(header.topic, 1)
        if not any(queue.topic == header.topic for queue in self.queues):
            self.create_topic(header.topic)
        message = StoredMessage(
            topic=header.topic,
            queue_id=header.queue_id,
            body=bytes(request.body),
            sys_flag=header.sys_flag,
            born_timestamp_ms=header.born_timestamp,
            reconsume_times=header.reconsume_times or 0,
            properties_text=header.properties or "",
        )
        stored = self._store(_queue(header.topic, header.queue_id), message)
        answer = SendMessageResponseHeader(
            msg_id=stored.offset_message_id, queue_id=header.queue_id, queue_offset=stored.queue_offset
        )
        return response(request, ResponseCode.SUCCESS, ext_fields=write_header(answer))

    def _send_batch(self, connection: Connection, request: Command) -> Command:
        header = read_header(SendMessageHeaderV2, request.ext_fields)
        queue = _queue(header.topic, header.queue_id)
        stored = [
            self._store(
                queue,
                StoredMessage(
                    topic=header.topic, queue_id=0, flag=one.flag, body=one.body, properties_text=one.properties_text
                ),
            )
            for one in decode_batch(request.body)
        ]
        ids = ",".join(message.offset_message_id for message in stored)
        answer = SendMessageResponseHeader(msg_id=ids, queue_id=header.queue_id, queue_offset=stored[0].queue_offset)
        return response(request, ResponseCode.SUCCESS, ext_fields=write_header(answer))

    def _store(self, queue: MessageQueue, message: StoredMessage) -> StoredMessage:
        host, _, port = self.address.rpartition(":")
        stored = msgspec.structs.replace(
            message,
            queue_id=queue.queue_id,
            queue_offset=self.max_offset(queue),
            commit_log_offset=self._log_offset,
            store_host=(host, int(port)),
            store_timestamp_ms=time.time_ns() // 1_000_000,
            properties_text=encode_properties(decode_properties(message.properties_text)),
        )
        self._log_offset += 1000
        self.queues.setdefault(queue, []).append(stored)
        held, self._held[queue] = self._held[queue], []
        for connection, request, timer in held:
            timer.cancel()
            answer = self._look(request, read_header(PullMessageHeader, request.ext_fields), queue)
            if answer is not None:
                connection.send(answer)
        return stored


def _queue(topic: str, queue_id: int | None) -> MessageQueue:
    return MessageQueue(topic, BROKER_NAME, queue_id or 0)
