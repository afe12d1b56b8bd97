"""A topic's route as clients use it: which queues to send to, which to read, where the brokers are.

Pure: from `TopicRouteData` to queues, by the rules of RocketMQ's `MQClientInstance.topicRouteData2TopicPublishInfo`
and `…2TopicSubscribeInfo`.
"""

from __future__ import annotations

import logging

import msgspec

from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import QueueData, TopicRouteData
from remoting.wire.bodies.topics import PERM_READ, PERM_WRITE

logger = logging.getLogger(__name__)

# `defaultTopicQueueNums` of a producer: the most queues per broker that a send may create a topic with.
AUTO_CREATE_QUEUES_MAX = 4
# More than any broker allows; a name server that claims more is not believed.
QUEUES_PER_BROKER_MAX = 65_536


class TopicRoute(msgspec.Struct, frozen=True):
    """`is_template`: the topic does not exist yet; this is what it will look like after the first send."""

    data: TopicRouteData
    publish_queues: tuple[MessageQueue, ...]
    subscribe_queues: tuple[MessageQueue, ...]
    is_template: bool = False


def topic_route(topic: str, data: TopicRouteData) -> TopicRoute:
    """Returns the route of `topic` with the queues that follow from it."""
    data = in_order(data)
    return TopicRoute(data, _publish_queues(topic, data), _subscribe_queues(topic, data))


def template_route(topic: str, template: TopicRouteData) -> TopicRoute:
    """Returns the route that `topic` will have, made of the route of TBW102. Nothing can be read yet."""
    data = in_order(template)
    for queue_data in data.queue_datas:
        count = min(AUTO_CREATE_QUEUES_MAX, queue_data.read_queue_nums)
        queue_data.read_queue_nums = queue_data.write_queue_nums = count
    return TopicRoute(data, _publish_queues(topic, data), (), is_template=True)


def in_order(data: TopicRouteData) -> TopicRouteData:
    """Returns a copy whose lists are sorted, so that equal routes compare equal: name servers order them at random."""
    return TopicRouteData(
        broker_datas=sorted(data.broker_datas, key=lambda broker: broker.broker_name),
        filter_server_table=data.filter_server_table,
        order_topic_conf=data.order_topic_conf or None,
        queue_datas=[
            msgspec.structs.replace(queue_data)
            for queue_data in sorted(data.queue_datas, key=lambda queue_data: queue_data.broker_name)
        ],
    )


def _publish_queues(topic: str, data: TopicRouteData) -> tuple[MessageQueue, ...]:
    """Returns the writable queues of brokers with a master; of an ordered topic those that its configuration names."""
    if data.order_topic_conf:
        counts = _order_counts(topic, data.order_topic_conf)
    else:
        counts = [
            (queue_data.broker_name, queue_data.write_queue_nums)
            for queue_data in data.queue_datas
            if queue_data.perm & PERM_WRITE and _has_master(data, queue_data)
        ]
    return _queues(topic, counts)


def _subscribe_queues(topic: str, data: TopicRouteData) -> tuple[MessageQueue, ...]:
    readable = [queue_data for queue_data in data.queue_datas if queue_data.perm & PERM_READ]
    return _queues(topic, [(queue_data.broker_name, queue_data.read_queue_nums) for queue_data in readable])


def _has_master(data: TopicRouteData, queue_data: QueueData) -> bool:
    broker = data.broker(queue_data.broker_name)
    return broker is not None and broker.master_addr is not None


def _queues(topic: str, counts: list[tuple[str, int]]) -> tuple[MessageQueue, ...]:
    return tuple(
        MessageQueue(topic, broker_name, queue_id)
        for broker_name, count in counts
        for queue_id in range(min(count, QUEUES_PER_BROKER_MAX))
    )


def _order_counts(topic: str, text: str) -> list[tuple[str, int]]:
    """Reads "broker-a:4;broker-b:2" as pairs of broker name and number of queues."""
    counts: list[tuple[str, int]] = []
    for part in text.split(";"):
        broker_name, _, count = part.strip().rpartition(":")
        if broker_name and count.isdecimal():
            counts.append((broker_name, int(count)))
        elif part.strip():
            logger.warning("topic %s: order configuration %r cannot be read", topic, part)
    return counts
