"""PULL_MESSAGE (11), LITE_PULL_MESSAGE (361): `PullMessageProcessor`.

A pull whose member has a newer subscription than the broker knows waits until the member was asked for it.
A pull that finds nothing new, and may wait, is held (`held_pulls.py`) and evaluated again, from the first check on,
when a message comes or its time is over. The second evaluation neither holds again nor commits an offset.

What a filter lets through is judged in `filters/subscriptions.py`.
"""

from __future__ import annotations

import asyncio
import time

from broker.engine.config import BrokerConfig
from broker.engine.filters.subscriptions import MessageFilter, SubscriptionFilters
from broker.engine.groups.group_configs import Groups
from broker.engine.groups.members import Members
from broker.engine.groups.newer_subscriptions import NewerSubscriptions
from broker.engine.groups.offsets import Offsets
from broker.engine.serving.held_pulls import EXPRESSION_BYTES_PER_CHAR, PULL_BYTES, HeldPull, HeldPulls
from broker.engine.serving.requests import Request
from broker.engine.stats import BrokerStats
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import ReadResult, ReadStatus
from broker.engine.topics.topic_configs import Topics
from broker.engine.watch.watch import Watch
from remoting.complaints import ComplaintLog
from remoting.connection import Connection
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.pull import COMMIT_OFFSET_FLAG, SUBSCRIPTION_FLAG, SUSPEND_FLAG, PullMessageHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.limits import PULL_BYTES_MAX, PULL_MESSAGES_MAX

# `ForbiddenType` in the answer's header: what forbids the pull.
FORBIDDEN_BROKER = 1
FORBIDDEN_GROUP = 2
FORBIDDEN_TOPIC = 3
FORBIDDEN_BROADCAST = 4

_CODES = {
    ReadStatus.FOUND: ResponseCode.SUCCESS,
    ReadStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    ReadStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    ReadStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    ReadStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    ReadStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    ReadStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}


class Forbidden(MessageError):
    """NO_PERMISSION, with RocketMQ's `ForbiddenType`."""

    def __init__(self, text: str, forbidden_type: int) -> None:
        super().__init__(text, ResponseCode.NO_PERMISSION)
        self.forbidden_type = forbidden_type


class NotLatest(MessageError):
    """SUBSCRIPTION_NOT_LATEST: the member's subscription is newer than what its heartbeats said."""

    def __init__(self) -> None:
        super().__init__("the consumer's subscription not latest", ResponseCode.SUBSCRIPTION_NOT_LATEST)


class PullMessage:
    def __init__(
        self,
        *,
        topics: Topics,
        groups: Groups,
        members: Members,
        offsets: Offsets,
        store: MessageStore,
        held_pulls: HeldPulls,
        watch: Watch,
        stats: BrokerStats,
        filters: SubscriptionFilters,
        newer: NewerSubscriptions,
        config: BrokerConfig,
        complaints: ComplaintLog,
    ) -> None:
        """`stats` counts pulls, and the messages that they are given. `complaints` gets a line when a
        queue can't be read."""
        self._topics = topics
        self._groups = groups
        self._members = members
        self._offsets = offsets
        self._store = store
        self._held_pulls = held_pulls
        self._watch = watch
        self._stats = stats
        self._filters = filters
        self._newer = newer
        self._config = config
        self._complaints = complaints

    def __call__(self, request: Request) -> Command | None:
        """Returns the answer, or None while the pull is held. Raises WireError with the code to answer."""
        command = request.command
        header = read_header(PullMessageHeader, command.ext_fields)
        try:
            group, topic, message_filter = self._check(header)
        except Forbidden as error:
            return _forbidden(command, error)
        except NotLatest:
            if self._newer.ask(request.connection, header.consumer_group, lambda: self._answer_later(request, header)):
                return None
            raise
        client_id = self._members.client_id_of(request.connection, header.consumer_group)
        if client_id is not None:
            self._watch.pulled(header.consumer_group, header.topic, header.queue_id, client_id)
        result = self._read(header, message_filter)
        commits = header.sys_flag & COMMIT_OFFSET_FLAG and header.commit_offset >= 0
        if commits and result.status is not ReadStatus.OFFSET_RESET:
            self._offsets.commit(header.consumer_group, header.topic, header.queue_id, header.commit_offset)
        code = _code_of(result, header)
        if (
            code == ResponseCode.PULL_NOT_FOUND
            and header.sys_flag & SUSPEND_FLAG
            and self._hold(request, header, message_filter)
        ):
            return None
        return _answer(command, code, result, topic, group)

    # the checks, in RocketMQ's order

    def _check(self, header: PullMessageHeader) -> tuple[SubscriptionGroupConfig, TopicConfig, MessageFilter]:
        """Raises MessageError with the code to answer."""
        if not self._config.is_readable:
            raise Forbidden(f"the broker[{self._config.advertise_host}] pulling message is forbidden", FORBIDDEN_BROKER)
        group = self._groups.find(header.consumer_group)
        if group is None:
            raise MessageError(
                f"subscription group [{header.consumer_group}] does not exist",
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            )
        if not group.consume_enable:
            raise Forbidden(f"subscription group no permission, {header.consumer_group}", FORBIDDEN_GROUP)
        topic = self._topics.find(header.topic)
        if topic is None:
            raise MessageError(f"topic[{header.topic}] not exist, apply first please!", ResponseCode.TOPIC_NOT_EXIST)
        if not topic.is_readable:
            raise Forbidden(f"the topic[{header.topic}] pulling message is forbidden", FORBIDDEN_TOPIC)
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise MessageError(
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}]"
                f" topicConfig.readQueueNums:[{topic.read_queue_nums}]",
                ResponseCode.INVALID_PARAMETER,
            )
        if header.sys_flag & SUBSCRIPTION_FLAG:
            return group, topic, self._filters.of_request(header.expression_type, header.subscription)
        return group, topic, self._group_filter(header, group)

    def _group_filter(self, header: PullMessageHeader, group: SubscriptionGroupConfig) -> MessageFilter:
        """Returns the filter of the one subscription table that the broker keeps for the whole group."""
        members = self._members.find(header.consumer_group)
        if members is None:
            raise MessageError("the consumer's group info not exist", ResponseCode.SUBSCRIPTION_NOT_EXIST)
        if members.message_model == "BROADCASTING" and not group.consume_broadcast_enable:
            raise Forbidden(
                f"the consumer group[{header.consumer_group}] can not consume by broadcast way", FORBIDDEN_BROADCAST
            )
        subscription = members.subscriptions.get(header.topic)
        if subscription is None:
            raise MessageError("the consumer's subscription not exist", ResponseCode.SUBSCRIPTION_NOT_EXIST)
        if subscription.sub_version < header.sub_version:
            raise NotLatest
        return self._filters.of_group(subscription)

    # reading and holding

    def _read(self, header: PullMessageHeader, message_filter: MessageFilter) -> ReadResult:
        reset = self._offsets.take_reset(header.consumer_group, header.topic, header.queue_id)
        if reset is not None:
            edges = (self._store.min_offset, self._store.max_offset)
            first, end = (edge(header.topic, header.queue_id) for edge in edges)
            result = ReadResult(ReadStatus.OFFSET_RESET, reset, first, end)
        else:
            began_s = time.perf_counter()
            result = self._store.read(
                header.topic,
                header.queue_id,
                header.queue_offset,
                max_messages=max(1, min(header.max_msg_nums, PULL_MESSAGES_MAX)),
                max_bytes=PULL_BYTES_MAX,
                matches=message_filter.codes,
                properties_match=message_filter.properties,
            )
            self._stats.get_times.add(time.perf_counter() - began_s)
        self._offsets.pulled(header.consumer_group, header.topic, header.queue_id, result.next_begin_offset)
        if result.message_count:
            self._stats.given_out(header.topic, header.consumer_group, result.message_count)
            self._stats.found.count(None)
        else:
            self._stats.missed.count(None)
        return result

    def _hold(self, request: Request, header: PullMessageHeader, message_filter: MessageFilter) -> bool:
        now_s = asyncio.get_running_loop().time()
        held = HeldPull(
            topic=header.topic,
            queue_id=header.queue_id,
            queue_offset=header.queue_offset,
            matches=message_filter.codes,
            properties_match=message_filter.properties,
            connection=request.connection,
            deadline_s=now_s + max(0, header.suspend_timeout_millis) / 1000,
            resume=self._resume,
            payload=(request.command, header),
            held_bytes=PULL_BYTES + EXPRESSION_BYTES_PER_CHAR * len(header.subscription or ""),
            group=header.consumer_group,
        )
        return self._held_pulls.hold(held)

    def _resume(self, held: HeldPull) -> None:
        """Answers a held pull with its second evaluation."""
        self._answer_now(held.connection, *held.payload)

    def _answer_later(self, request: Request, header: PullMessageHeader) -> None:
        """Answers a pull whose member has told its newer subscriptions, or has not."""
        self._answer_now(request.connection, request.command, header)

    def _answer_now(self, connection: Connection, command: Command, header: PullMessageHeader) -> None:
        try:
            group, topic, message_filter = self._check(header)
            result = self._read(header, message_filter)
        except Forbidden as error:
            connection.send(_forbidden(command, error))
            return
        except MessageError as error:
            connection.send(response(command, error.response_code, str(error)))
            return
        except OSError as error:
            words = "queue %d of topic %s cannot be read: %s"
            self._complaints.warn(header.topic, "not read", words, header.queue_id, header.topic, error)
            connection.send(response(command, ResponseCode.SYSTEM_ERROR, str(error)))
            return
        connection.send(_answer(command, _code_of(result, header), result, topic, group))


def _code_of(result: ReadResult, header: PullMessageHeader) -> ResponseCode:
    code = _CODES.get(result.status)
    if code is None:  # a queue without messages: any other place than its start is a wrong one
        return ResponseCode.PULL_NOT_FOUND if header.queue_offset == 0 else ResponseCode.PULL_OFFSET_MOVED
    return code


def _answer(
    command: Command, code: ResponseCode, result: ReadResult, topic: TopicConfig, group: SubscriptionGroupConfig
) -> Command:
    fields = {
        "suggestWhichBrokerId": str(group.broker_id),
        "nextBeginOffset": str(result.next_begin_offset),
        "minOffset": str(result.min_offset),
        "maxOffset": str(result.max_offset),
        "topicSysFlag": str(topic.topic_sys_flag),
        "groupSysFlag": str(group.group_sys_flag),
    }
    return response(command, code, result.status.value, fields, result.body)


def _forbidden(command: Command, error: Forbidden) -> Command:
    fields = {"forbiddenType": str(error.forbidden_type)}
    return response(command, error.response_code, str(error), fields)
