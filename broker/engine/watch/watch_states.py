"""The present state of topics, groups, queues and offsets for watch answers, gathered page by page.

A large broker's state does not fit into a frame, and gathering it would hold up one turn of the event loop. A page is
what was gathered within `PAGE_S`; the next one goes on there. Which names are in the answer is fixed at its start, the
state of each is read when its page is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter

from broker.engine.config import BrokerConfig
from broker.engine.groups.group_configs import Groups
from broker.engine.groups.members import GroupMembers, Member, Members
from broker.engine.groups.offsets import Offsets
from broker.engine.groups.subscription_conflicts import SubscriptionConflict
from broker.engine.store.message_store import MessageStore
from broker.engine.topics.topic_configs import Topics
from broker.engine.watch.change_log import AffectedKeys, CommitKey, QueueKey
from broker.engine.watch.watch import Watch
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.bodies.watch import (
    AssignmentState,
    CommittedState,
    DifferenceState,
    GroupState,
    MemberState,
    QueueState,
    SchedulerState,
    WatchBody,
    WatchEvent,
)
from remoting.wire.codes import OUR_VERSION, LanguageCode
from remoting.wire.names import is_system_topic

# What a page may hold up the others; writing it takes about as long again.
PAGE_S = 0.008
# About 1 MB, well below what fits into a frame, however fast the machine is.
PAGE_PARTS_MAX = 8_000
LOOKS_AT_CLOCK_EVERY = 32

# The list of the body that it belongs into, and the state.
Part = tuple[str, object]


class WatchStates:
    """`scheduler_state()`: the scheduler's part of each answer. `clock`: ms since the epoch."""

    def __init__(
        self,
        *,
        watch: Watch,
        topics: Topics,
        groups: Groups,
        members: Members,
        offsets: Offsets,
        store: MessageStore,
        scheduler_state: Callable[[], SchedulerState],
        config: BrokerConfig,
        clock: Callable[[], int],
    ) -> None:
        self._watch = watch
        self._topics = topics
        self._groups = groups
        self._members = members
        self._offsets = offsets
        self._store = store
        self._scheduler_state = scheduler_state
        self._config = config
        self._clock = clock

    def snapshot(self) -> Pages:
        """Returns the state of everything."""
        topics = sorted(self._topics.table.topic_config_table)
        groups = sorted(self._groups.table.subscription_group_table)
        return Pages(self, [], self._parts(groups, topics, (), self._offsets.keys()))

    def of(self, events: list[WatchEvent], affected: AffectedKeys) -> Pages:
        queues = (key for key in affected.queues if key[0] not in affected.topics)
        return Pages(self, events, self._parts(affected.groups, affected.topics, queues, affected.commits))

    def empty(self) -> WatchBody:
        return WatchBody(
            now_ms=self._clock(),
            cluster=self._config.cluster,
            broker_name=self._config.name,
            broker_addr=self._config.address,
            version=OUR_VERSION,
            scheduler=self._scheduler_state(),
        )

    def _parts(
        self, groups: Iterable[str], topics: Iterable[str], queues: Iterable[QueueKey], commits: Iterable[CommitKey]
    ) -> Iterator[Part]:
        for name in topics:
            config = self._topics.table.topic_config_table.get(name)
            if config is None:
                yield "gone_topics", name
                continue
            yield "topics", config
            for queue_id in self._queues_of(config):
                yield "queues", self._queue(name, queue_id)
        for name in groups:
            group = self._groups.table.subscription_group_table.get(name)
            yield ("groups", self._group(group)) if group is not None else ("gone_groups", name)
        for topic, queue_id in queues:
            yield "queues", self._queue(topic, queue_id)
        for group_name, topic, queue_id in commits:
            state = self._committed(group_name, topic, queue_id)
            if state is not None:
                yield "committed", state

    def _group(self, config: SubscriptionGroupConfig) -> GroupState:
        online = self._members.find(config.group_name) or GroupMembers(config.group_name)
        conflicts = online.conflicts.snapshot()
        return GroupState(
            config=config,
            consume_type=online.consume_type or None,
            message_model=online.message_model or None,
            consume_from_where=online.consume_from_where or None,
            members=[_member(member, conflicts.get(connection, [])) for connection, member in online.members.items()],
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

    def _queues_of(self, topic: TopicConfig) -> Iterable[int]:
        """Returns all queues of a topic, empty ones too; of the broker's own topics only those that hold something."""
        if is_system_topic(topic.topic_name):
            return self._store.queues(topic.topic_name)
        return range(max(topic.read_queue_nums, topic.write_queue_nums))

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

    def _committed(self, group: str, topic: str, queue_id: int) -> CommittedState | None:
        committed = self._offsets.committed(group, topic, queue_id)
        if committed is None:
            return None
        return CommittedState(
            group=group,
            topic=topic,
            queue_id=queue_id,
            committed_offset=committed,
            behind_since_ms=max(0, self._store.store_timestamp_at(topic, queue_id, committed)),
        )


class Pages:
    """One answer, in as many pages as it takes."""

    def __init__(self, states: WatchStates, events: list[WatchEvent], parts: Iterator[Part]) -> None:
        self._states = states
        self._events = events
        self._parts = parts

    def next(self) -> tuple[WatchBody, bool]:
        """Returns the next page, and whether there are more."""
        body = self._states.empty()
        body.events, self._events = self._events, []
        ends_s = perf_counter() + PAGE_S
        for count, (name, state) in enumerate(self._parts, start=1):
            getattr(body, name).append(state)
            if count >= PAGE_PARTS_MAX or (count % LOOKS_AT_CLOCK_EVERY == 0 and perf_counter() >= ends_s):
                return body, True
        return body, False


def _member(member: Member, conflicts: list[SubscriptionConflict]) -> MemberState:
    return MemberState(
        client_id=member.client_id,
        client_addr=member.connection.peer,
        language=LanguageCode(member.language).name,
        version=member.version,
        online_since_ms=member.online_since_ms,
        last_heartbeat_ms=member.last_heartbeat_ms,
        consume_type=member.consume_type or None,
        message_model=member.message_model or None,
        consume_from_where=member.consume_from_where or None,
        subscriptions=member.subscriptions,
        differences=[_difference(conflict) for conflict in conflicts],
    )


def _difference(conflict: SubscriptionConflict) -> DifferenceState:
    expression_type, expression = conflict.expression if conflict.expression is not None else (None, None)
    return DifferenceState(
        topic=conflict.topic,
        expression=expression,
        expression_type=expression_type,
        sub_version=conflict.sub_version,
        since_ms=conflict.since_ms,
        last_seen_ms=conflict.last_seen_ms,
        is_over=conflict.is_over,
        others=conflict.others,
    )
