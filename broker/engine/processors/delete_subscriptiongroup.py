"""DELETE_SUBSCRIPTIONGROUP (207): a tool deletes a consumer group (RocketMQ's `AdminBrokerProcessor`)."""

from __future__ import annotations

from broker.engine.groups.assignments import Assignments
from broker.engine.groups.group_configs import Groups
from broker.engine.groups.offsets import Offsets
from broker.engine.serving.held_pulls import HeldPulls
from broker.engine.serving.requests import Request
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.groups import DeleteGroupHeader
from remoting.wire.headers.typed import read_header


class DeleteSubscriptionGroup:
    """207. Members that are online go on, and bring the group back with their next heartbeat, as on RocketMQ."""

    def __init__(self, groups: Groups, offsets: Offsets, assignments: Assignments, held_pulls: HeldPulls) -> None:
        self._groups = groups
        self._offsets = offsets
        self._assignments = assignments
        self._held_pulls = held_pulls

    def __call__(self, request: Request) -> Command:
        """Deletes the group; one that isn't there is deleted already. Raises ConfigFileUnwritable."""
        header = read_header(DeleteGroupHeader, request.command.ext_fields)
        self._groups.delete(header.group_name)
        self._assignments.forget_group(header.group_name)
        if header.clean_offset:
            self._offsets.forget_group(header.group_name)
        self._held_pulls.wake_group(header.group_name)
        return response(request.command, ResponseCode.SUCCESS)
