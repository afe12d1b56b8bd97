"""The present state of what a watcher must be told, gathered from where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker.engine.changes import CommitKey, QueueKey, Touched
from broker.engine.config import BrokerConfig
from broker.engine.groups import Groups
from broker.engine.members import GroupMembers, Member, Members
from broker.engine.offsets import Offsets
from broker.engine.store.message_store import MessageStore
from broker.engine.topics import Topics
from broker.engine.watch import Watch
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.watch import (
    AssignmentState,
    CommittedState,
    GroupState,
    MemberState,
    QueueState,
    SchedulerState,
    WatchBody,
    WatchEvent,
)
from remoting.wire.codes import OUR_VERSION, LanguageCode
from remoting.wire.names import is_system_topic


class WatchStates:
    """`scheduler`: its state now. `clock`: ms since the epoch."""

    def __init__(
        self,
        watch: Watch,
        topics: Topics,
        groups: Groups,
        members: Members,
        offsets: Offsets,
        store: MessageStore,
        scheduler: Callable[[], SchedulerState],
        config: BrokerConfig,
        clock: Callable[[], int],
    ) -> None:
        self._watch = watch
        self._topics = topics
        self._groups = groups
        self._members = members
        self._offsets = offsets
        self._store = store
        self._scheduler = scheduler
        self._config = config
        self._clock = clock

    def snapshot(self) -> WatchBody:
        """Everything."""
        table = self._topics.table.topic_config_table
        touched = Touched(
            groups=set(self._groups.table.subscription_group_table),
            topics=set(table),
            commits={(group, topic, queue_id) for group, topic, queue_id, _ in self._offsets.items()},
        )
        return self.of([], touched)

    def of(self, events: list[WatchEvent], touched: Touched) -> WatchBody:
        topics = self._topics.table.topic_config_table
        groups = self._groups.table.subscription_group_table
        return WatchBody(
            now_ms=self._clock(),
            cluster=self._config.cluster,
            broker_name=self._config.name,
            broker_addr=self._config.address,
            version=OUR_VERSION,
            events=events,
            topics=[topics[name] for name in sorted(touched.topics) if name in topics],
            gone_topics=sorted(touched.topics - topics.keys()),
            groups=[self._group(groups[name]) for name in sorted(touched.groups) if name in groups],
            gone_groups=sorted(touched.groups - groups.keys()),
            queues=self._queues(touched.queues | self._queues_of(touched.topics)),
            committed=self._commits(touched.commits),
            scheduler=self._scheduler(),
        )

    def _group(self, config: SubscriptionGroupConfig) -> GroupState:
        online = self._members.find(config.group_name) or GroupMembers(config.group_name)
        return GroupState(
            config=config,
            consume_type=online.consume_type or None,
            message_model=online.message_model or None,
            consume_from_where=online.consume_from_where or None,
            members=[_member(member) for member in online.members.values()],
            subscriptions=list(online.subscriptions.values()),
            assignments=[
                AssignmentState(
                    topic=topic,
                    queue_id=queue_id,
                    client_id=assignment.client_id,
                    since_ms=assignment.since_ms,
                    last_pull_ms=assignment.last_pull_ms,
                )
                for topic, queue_id, assignment in self._watch.assignments.of_group(config.group_name)
            ],
        )

    def _queues_of(self, names: Iterable[str]) -> set[QueueKey]:
        """All queues of topics, empty ones too; of the broker's own topics only those that hold something."""
        keys: set[QueueKey] = set()
        for name in names:
            topic = self._topics.find(name)
            if topic is None:
                continue
            if is_system_topic(name):
                keys.update((name, queue_id) for queue_id in self._store.queues(name))
            else:
                keys.update((name, queue_id) for queue_id in range(max(topic.read_queue_nums, topic.write_queue_nums)))
        return keys

    def _queues(self, keys: Iterable[QueueKey]) -> list[QueueState]:
        return [self._queue(topic, queue_id) for topic, queue_id in sorted(keys)]

    def _queue(self, topic: str, queue_id: int) -> QueueState:
        end = self._store.max_offset(topic, queue_id)
        last_ms = self._store.store_timestamp_at(topic, queue_id, end - 1) if end > 0 else 0
        return QueueState(
            topic=topic,
            queue_id=queue_id,
            min_offset=self._store.min_offset(topic, queue_id),
            max_offset=end,
            max_store_ms=max(0, last_ms),
        )

    def _commits(self, keys: Iterable[CommitKey]) -> list[CommittedState]:
        states = []
        for group, topic, queue_id in sorted(keys):
            committed = self._offsets.committed(group, topic, queue_id)
            if committed is None:
                continue
            behind_ms = self._store.store_timestamp_at(topic, queue_id, committed)
            states.append(
                CommittedState(
                    group=group,
                    topic=topic,
                    queue_id=queue_id,
                    committed_offset=committed,
                    behind_since_ms=max(0, behind_ms),
                )
            )
        return states


def _member(member: Member) -> MemberState:
    return MemberState(
        client_id=member.client_id,
        client_addr=member.connection.peer,
        language=LanguageCode(member.language).name,
        version=member.version,
        online_since_ms=member.online_since_ms,
        last_heartbeat_ms=member.last_heartbeat_ms,
        subscriptions=member.subscriptions,
    )
