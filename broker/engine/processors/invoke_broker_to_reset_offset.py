"""INVOKE_BROKER_TO_RESET_OFFSET (222): a tool resets a group's offsets (`AdminBrokerProcessor.resetOffset`).

RocketMQ has two ways. At the broker, the one by default: the offset is set here, the next pull of each queue goes on
there, and no member needs to be online. At the clients (`server_side_reset` off, and all brokers before 5.2): each
member is sent the new offsets (220) and sets them itself; that goes backwards only, unless it is forced.
"""

from __future__ import annotations

import logging

from broker.engine.config import BrokerConfig
from broker.engine.groups.group_configs import Groups
from broker.engine.groups.members import Member, Members
from broker.engine.groups.offsets import Offsets
from broker.engine.serving.held_pulls import HeldPulls
from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.progress import Progress, write_reset, write_reset_for_cpp
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import V3_0_7_SNAPSHOT, LanguageCode, RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.offsets import ResetOffsetHeader
from remoting.wire.headers.typed import read_header, write_header

logger = logging.getLogger(__name__)

# Stands for "the end" as a time, and for "by time" as an offset.
NONE = -1


class InvokeBrokerToResetOffset:
    def __init__(
        self,
        *,
        topics: Topics,
        groups: Groups,
        members: Members,
        offsets: Offsets,
        store: MessageStore,
        held_pulls: HeldPulls,
        config: BrokerConfig,
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._members = members
        self._offsets = offsets
        self._store = store
        self._held_pulls = held_pulls
        self._config = config

    def __call__(self, request: Request) -> Command:
        """Raises MessageError; then nothing was reset."""
        header = read_header(ResetOffsetHeader, request.command.ext_fields)
        topic = self._topics.find(header.topic)
        if topic is None:
            raise MessageError(f"Topic {header.topic} does not exist", ResponseCode.TOPIC_NOT_EXIST)
        reset = self._reset_here if self._config.server_side_reset else self._reset_at_members
        offsets = reset(header, topic)
        logger.info("%s reset %s on %s to %s", request.connection.peer, header.group, header.topic, dict(offsets))
        return response(request.command, ResponseCode.SUCCESS, body=write_reset(offsets))

    # at the broker

    def _reset_here(self, header: ResetOffsetHeader, topic: TopicConfig) -> Progress:
        if not self._groups.exists(header.group):
            raise MessageError(f"Group {header.group} does not exist", ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST)
        if header.queue_id >= topic.read_queue_nums:
            raise MessageError(
                f"queueId {header.queue_id} is illegal: {header.topic} has {topic.read_queue_nums} queues to read",
                ResponseCode.INVALID_PARAMETER,
            )
        if header.queue_id >= 0:
            queues = {header.queue_id: self._target(header)}
        else:
            queues = {queue_id: self._by_time(header, queue_id) for queue_id in range(topic.read_queue_nums)}
        if not queues:
            raise MessageError("No queues to reset.", ResponseCode.SYSTEM_ERROR)
        for queue_id, queue_offset in queues.items():
            self._offsets.reset(header.group, header.topic, queue_id, queue_offset)
        self._held_pulls.wake_topic(header.topic)
        return {self._queue(header, queue_id): queue_offset for queue_id, queue_offset in queues.items()}

    def _target(self, header: ResetOffsetHeader) -> int:
        """Returns the offset to which one queue is reset. Raises MessageError."""
        wanted = header.offset
        if wanted is None or wanted == NONE:
            return self._by_time(header, header.queue_id)
        first = self._store.min_offset(header.topic, header.queue_id)
        end = self._store.max_offset(header.topic, header.queue_id)
        if not first <= wanted <= end + 1:
            raise MessageError(
                f"Target offset {wanted} not in consume queue range [{first}-{end}]", ResponseCode.SYSTEM_ERROR
            )
        return wanted

    def _by_time(self, header: ResetOffsetHeader, queue_id: int) -> int:
        if header.timestamp < 0:
            return self._store.max_offset(header.topic, queue_id)
        return self._store.offset_by_time(header.topic, queue_id, header.timestamp)

    def _queue(self, header: ResetOffsetHeader, queue_id: int) -> MessageQueue:
        return MessageQueue(header.topic, self._config.name, queue_id)

    # at the members (`Broker2Client.resetOffset`)

    def _reset_at_members(self, header: ResetOffsetHeader, topic: TopicConfig) -> Progress:
        offsets = {
            self._queue(header, queue_id): self._member_target(header, queue_id)
            for queue_id in range(topic.write_queue_nums)
        }
        group = self._members.find(header.group)
        if group is None:
            raise MessageError(
                f"Consumer not online, so can not reset offset, Group: {header.group}"
                f" Topic: {header.topic} Timestamp: {header.timestamp}",
                ResponseCode.CONSUMER_NOT_ONLINE,
            )
        members = list(group.members.values())
        for member in members:
            if member.version < V3_0_7_SNAPSHOT:
                raise MessageError(
                    f"the client {member.client_id} does not support this feature. version={member.version}",
                    ResponseCode.SYSTEM_ERROR,
                )
        for member in members:
            _tell(member, header, offsets)
        return offsets

    def _member_target(self, header: ResetOffsetHeader, queue_id: int) -> int:
        committed = self._offsets.committed(header.group, header.topic, queue_id)
        if committed is None:
            raise MessageError(
                f"THe consumer group <{header.group}> not exist: it has no offset on queue {queue_id}",
                ResponseCode.SYSTEM_ERROR,
            )
        if header.timestamp == NONE:
            wanted = self._store.max_offset(header.topic, queue_id)
        else:
            wanted = self._store.offset_by_time(header.topic, queue_id, header.timestamp)
        return wanted if header.is_force or wanted < committed else committed


def _tell(member: Member, header: ResetOffsetHeader, offsets: Progress) -> None:
    """Sends a member its new offsets (220): to C++ clients as a list, to all others as RocketMQ's map."""
    write = write_reset_for_cpp if member.language == LanguageCode.CPP else write_reset
    fields = ResetOffsetHeader(
        topic=header.topic, group=header.group, timestamp=header.timestamp, is_force=header.is_force
    )
    command = Command(
        code=RequestCode.RESET_CONSUMER_CLIENT_OFFSET, ext_fields=write_header(fields), body=write(offsets)
    )
    member.connection.requester.send_oneway(command)
