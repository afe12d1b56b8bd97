"""GET_BROKER_CONSUME_STATS (317): the progress of every group on every topic."""

from __future__ import annotations

from broker.engine.groups.group_configs import Groups
from broker.engine.processors.get_consume_stats import GetConsumeStats
from broker.engine.serving.requests import Request
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.consume_stats import ConsumeStats
from remoting.wire.bodies.statistics import write_broker_consume_stats
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.statistics import BrokerConsumeStatsHeader
from remoting.wire.headers.typed import read_header

# Queues in one answer: some 200 bytes each, and a frame holds 16 MiB.
QUEUES_MAX = 50_000


class GetBrokerConsumeStats:
    def __init__(self, topics: Topics, groups: Groups, of_group: GetConsumeStats, broker_addr: str) -> None:
        self._topics = topics
        self._groups = groups
        self._of_group = of_group
        self._broker_addr = broker_addr

    def __call__(self, request: Request) -> Command:
        """Raises MessageError (SYSTEM_ERROR) where there are too many queues for one answer."""
        header = read_header(BrokerConsumeStatsHeader, request.command.ext_fields)
        groups: dict[str, list[ConsumeStats]] = {}
        queue_count = 0
        for group in self._groups.table.subscription_group_table:
            groups[group] = [
                self._of_group.on_topic(group, topic)
                for topic in self._of_group.topics_of(group)
                if self._is_wanted(topic, header)
            ]
            queue_count += sum(len(stats.queues) for stats in groups[group])
            if queue_count > QUEUES_MAX:
                raise MessageError(
                    f"the groups read more than {QUEUES_MAX} queues together; ask for single groups (208)",
                    ResponseCode.SYSTEM_ERROR,
                )
        body = write_broker_consume_stats(groups, self._broker_addr)
        return response(request.command, ResponseCode.SUCCESS, body=body)

    def _is_wanted(self, topic: str, header: BrokerConsumeStatsHeader) -> bool:
        config = self._topics.find(topic)
        return config is not None and (config.order or not header.is_order)
