"""Consumer groups as tools see and change them: 200, 207, 225, 352 (RocketMQ's `AdminBrokerProcessor`).

UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200), …_LIST (225), DELETE_SUBSCRIPTIONGROUP (207), GET_SUBSCRIPTIONGROUP_CONFIG
(352).
"""

from __future__ import annotations

from broker.engine.groups.assignments import Assignments
from broker.engine.groups.group_configs import Groups
from broker.engine.groups.offsets import Offsets
from broker.engine.serving.held_pulls import HeldPulls
from broker.engine.serving.requests import Request
from broker.engine.topics.topic_configs import QUEUE_NUMS_MAX, Topics
from remoting.wire.bodies.document import read_body, write_body
from remoting.wire.bodies.groups import GroupsWanted, SubscriptionGroupConfig
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.groups import DeleteGroupHeader, GroupHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.names import check_group, retry_topic


class GetGroupConfig:
    """A group that may be made is made by asking, as RocketMQ does."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def __call__(self, request: Request) -> Command:
        """Raises MessageError for a group that is not there."""
        header = read_header(GroupHeader, request.command.ext_fields)
        group = self._groups.find(header.group)
        if group is None:
            raise MessageError(
                f"No group in this broker. group: {header.group}", ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            )
        return response(request.command, ResponseCode.SUCCESS, body=write_body(group))


class UpdateGroup:
    """200. A retry topic that is there already grows with the group's number of retry queues: a send-back picks one
    of them."""

    def __init__(self, groups: Groups, topics: Topics, held_pulls: HeldPulls) -> None:
        self._groups = groups
        self._topics = topics
        self._held_pulls = held_pulls

    def __call__(self, request: Request) -> Command:
        """Raises BodyError, MessageError naming what cannot be, ConfigFileUnwritable; then no group has changed."""
        self._put([read_body(SubscriptionGroupConfig, request.command.body)])
        return response(request.command, ResponseCode.SUCCESS)

    def several(self, request: Request) -> Command:
        """225. All or none."""
        self._put(read_body(GroupsWanted, request.command.body).group_config_list)
        return response(request.command, ResponseCode.SUCCESS)

    def _put(self, groups: list[SubscriptionGroupConfig]) -> None:
        for group in groups:
            check_group(group.group_name)
            _check_settings(group)
        for group in groups:
            self._topics.grow(retry_topic(group.group_name), group.retry_queue_nums)
        self._groups.put_all(groups)
        for group in groups:
            self._held_pulls.wake_group(group.group_name)


class DeleteGroup:
    """207. Members that are online go on, and bring the group back with their next heartbeat, as on RocketMQ."""

    def __init__(self, groups: Groups, offsets: Offsets, assignments: Assignments, held_pulls: HeldPulls) -> None:
        self._groups = groups
        self._offsets = offsets
        self._assignments = assignments
        self._held_pulls = held_pulls

    def __call__(self, request: Request) -> Command:
        """A group that isn't there is deleted already. Raises ConfigFileUnwritable."""
        header = read_header(DeleteGroupHeader, request.command.ext_fields)
        self._groups.delete(header.group_name)
        self._assignments.forget_group(header.group_name)
        if header.clean_offset:
            self._offsets.forget_group(header.group_name)
        self._held_pulls.wake_group(header.group_name)
        return response(request.command, ResponseCode.SUCCESS)


def _check_settings(group: SubscriptionGroupConfig) -> None:
    """RocketMQ takes any number; a send-back to one of -1 queues would fail each time."""
    if not 0 <= group.retry_queue_nums <= QUEUE_NUMS_MAX:
        raise MessageError(
            f"retryQueueNums {group.retry_queue_nums} is illegal: give 0 (no retries) to {QUEUE_NUMS_MAX}",
            ResponseCode.INVALID_PARAMETER,
        )
    if group.attributes:
        raise MessageError(
            f"unsupported key: {', '.join(group.attributes)}; groups have no attributes", ResponseCode.SYSTEM_ERROR
        )
