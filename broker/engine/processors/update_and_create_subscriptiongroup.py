"""UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200), UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225): a tool makes or changes
consumer groups (RocketMQ's `AdminBrokerProcessor`).
"""

from __future__ import annotations

from broker.engine.groups.group_configs import Groups
from broker.engine.serving.held_pulls import HeldPulls
from broker.engine.serving.requests import Request, answer_when_saved
from broker.engine.topics.topic_configs import QUEUE_NUMS_MAX, Topics
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.groups import SubscriptionGroupConfig, SubscriptionGroupList
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.names import check_group, retry_topic


class UpdateAndCreateSubscriptionGroup:
    """200. A retry topic that is there already grows with the group's number of retry queues: a send-back picks one
    of them."""

    def __init__(self, groups: Groups, topics: Topics, held_pulls: HeldPulls) -> None:
        self._groups = groups
        self._topics = topics
        self._held_pulls = held_pulls

    def __call__(self, request: Request) -> None:
        """Answers once the group is on the disk. Raises BodyError, MessageError naming what cannot be,
        ConfigFileUnwritable; then no group has changed."""
        self._put(request, [read_body(SubscriptionGroupConfig, request.command.body)])

    def put_list(self, request: Request) -> None:
        """Creates or changes all groups of a list, or none (225)."""
        self._put(request, read_body(SubscriptionGroupList, request.command.body).group_config_list)

    def _put(self, request: Request, groups: list[SubscriptionGroupConfig]) -> None:
        for group in groups:
            check_group(group.group_name)
            _check_settings(group)
        for group in groups:
            self._topics.grow(retry_topic(group.group_name), group.retry_queue_nums)
        answer = answer_when_saved(request)

        def saved(refusal: MessageError | None) -> None:
            if refusal is None:
                for group in groups:
                    self._held_pulls.wake_group(group.group_name)
            answer(refusal)

        self._groups.put(groups, saved)


def _check_settings(group: SubscriptionGroupConfig) -> None:
    """Raises MessageError for a number that cannot be.

    RocketMQ takes any; a send-back to one of -1 queues would fail each time.
    """
    if not 0 <= group.retry_queue_nums <= QUEUE_NUMS_MAX:
        raise MessageError(
            f"retryQueueNums {group.retry_queue_nums} is illegal: give 0 (no retries) to {QUEUE_NUMS_MAX}",
            ResponseCode.INVALID_PARAMETER,
        )
    if group.attributes:
        raise MessageError(
            f"unsupported key: {', '.join(group.attributes)}; groups have no attributes", ResponseCode.SYSTEM_ERROR
        )
