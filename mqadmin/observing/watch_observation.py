"""The answer to a watch as an observation. Pure: a body in, values out."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from mqadmin.clusters.moments import moment_or_none
from mqadmin.observing.observation import (
    CommitObserved,
    ConsumptionObserved,
    GroupObserved,
    GroupSettingsObserved,
    MemberObserved,
    Observation,
    ObservedEvent,
    Owner,
    QueueObserved,
    SubscriptionKey,
    TopicObserved,
)
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.watch import (
    ASSIGNMENT_CHANGED,
    MEMBER_JOINED,
    MEMBER_LEFT,
    MEMBER_LOST,
    SUBSCRIPTION_CHANGED,
    GroupState,
    MemberState,
    WatchBody,
    WatchEvent,
)

_CONCERNS_MEMBERS = frozenset((MEMBER_JOINED, MEMBER_LEFT, MEMBER_LOST, SUBSCRIPTION_CHANGED, ASSIGNMENT_CHANGED))


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def observation_of_watch(body: WatchBody, *, boot: str, is_snapshot: bool, now: datetime) -> Observation:
    """Returns what the body says. Its events keep the broker's clock; `now` is ours."""
    return Observation(
        at=now,
        is_complete=is_snapshot,
        of_broker=body.broker_name,
        topics=tuple(
            TopicObserved(topic.topic_name, topic.read_queue_nums, topic.write_queue_nums, topic.perm)
            for topic in body.topics
        ),
        gone_topics=tuple(body.gone_topics),
        queues=tuple(
            QueueObserved(
                MessageQueue(state.topic, body.broker_name, state.queue_id),
                state.min_offset,
                state.max_offset,
                moment_or_none(state.max_store_ms),
            )
            for state in body.queues
        ),
        groups=tuple(_group(state, body.broker_name) for state in body.groups),
        gone_groups=tuple(body.gone_groups),
        committed=tuple(
            CommitObserved(
                state.group,
                MessageQueue(state.topic, body.broker_name, state.queue_id),
                state.committed_offset,
                moment_or_none(state.behind_since_ms),
            )
            for state in body.committed
        ),
        events=tuple(
            _event(event, boot, body.broker_name)
            for event in body.events
            if event.kind in _CONCERNS_MEMBERS and event.group
        ),
    )


def _group(state: GroupState, broker_name: str) -> GroupObserved:
    return GroupObserved(
        name=state.config.group_name,
        settings=GroupSettingsObserved(state.config.consume_enable, state.config.retry_max_times),
        consumption=ConsumptionObserved(
            state.message_model or "", state.consume_type or "", state.consume_from_where or ""
        ),
        members=tuple(_member(member) for member in state.members),
        subscriptions=_subscriptions(state),
        owners={
            MessageQueue(assignment.topic, broker_name, assignment.queue_id): Owner(
                assignment.client_id, moment(assignment.since_ms), moment(assignment.last_pull_ms)
            )
            for assignment in state.assignments
        },
    )


def _member(state: MemberState) -> MemberObserved:
    return MemberObserved(
        client_id=state.client_id,
        address=state.client_addr,
        language=state.language,
        version=state.version,
        online_since=moment_or_none(state.online_since_ms),
        last_heartbeat_at=moment_or_none(state.last_heartbeat_ms),
        message_model=state.message_model or "",
        consume_from_where=state.consume_from_where or "",
        differences=[msgspec.structs.asdict(difference) for difference in state.differences],
    )


def _subscriptions(state: GroupState) -> dict[SubscriptionKey, int]:
    table = {_key("", entry): entry.sub_version for entry in state.subscriptions}
    for member in state.members:
        table |= {_key(member.client_id, entry): entry.sub_version for entry in member.subscriptions}
    return table


def _key(client_id: str, entry: SubscriptionData) -> SubscriptionKey:
    return SubscriptionKey(client_id, entry.topic, entry.sub_string, entry.expression_type)


def _event(event: WatchEvent, boot: str, broker_name: str) -> ObservedEvent:
    queue = None
    if event.topic is not None and event.queue_id is not None:
        queue = MessageQueue(event.topic, broker_name, event.queue_id)
    return ObservedEvent(
        key=f"{boot}:{event.revision}",
        at=moment(event.at_ms),
        kind=event.kind,
        group=event.group or "",
        client_id=event.client_id or "",
        queue=queue,
        from_client=event.detail.get("from", ""),
        to_client=event.detail.get("to", ""),
    )
