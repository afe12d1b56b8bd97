"""Polls a cluster that cannot be watched, Apache's, within a budget of requests.

A cycle asks the name servers once (106), every master for its tables (21, 201, and 43 with all committed offsets), then
topics for the min and max offsets of their queues (202) and groups for their members (203), in turn, as far as the
budget reaches; the next cycle goes on where it stopped. Whose turn it is `turns.py` says. Of groups that matter the
next message of each queue that has messages waiting is read (11), for its store time (`exact_waiting.py`): last and not
for long, and one that cannot be read says nothing of its broker.

Committed offsets are read before the max offsets: the other way round, a lag could come out negative. What was not
asked keeps its older rows, with their age.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

from mqadmin.clusters.moments import moment_or_none
from mqadmin.observing import turns
from mqadmin.observing.exact_waiting import (
    READS_PER_CYCLE_MAX,
    NextMessage,
    Unreadable,
    readable,
    remembered,
    to_read,
    waiting_messages,
)
from mqadmin.observing.gateway import BrokerTables, Failures, Gateway, PartialError
from mqadmin.observing.observation import (
    BrokerObserved,
    CommitObserved,
    ConsumptionObserved,
    GroupObserved,
    GroupSettingsObserved,
    MemberObserved,
    Observation,
    QueueObserved,
    SubscriptionKey,
    TopicObserved,
)
from mqadmin.observing.turns import Cursors, Urgent
from remoting.wire.bodies.groups import ConsumerConnection
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import BrokerData
from remoting.wire.bodies.topics import TopicConfig, TopicOffset
from remoting.wire.names import is_retry_topic

REQUESTS_PER_CYCLE_MAX = 400
# All reads of next messages: a broker may have to fetch old ones from its disk, and a cycle comes every 15 s.
STORE_TIMES_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """`error` names the brokers that did not answer; what the others said is in `observation`.

    `unreadable`: what the next cycle does not ask for.
    """

    rocketmq_name: str
    brokers: tuple[BrokerObserved, ...]
    observation: Observation
    cursors: Cursors
    request_count: int
    error: PartialError | None
    unreadable: tuple[Unreadable, ...]


async def poll(
    gateway: Gateway,
    cursors: Cursors,
    now: datetime,
    budget: int = REQUESTS_PER_CYCLE_MAX,
    expected: Collection[str] = (),
    urgent: Urgent | None = None,
    digests: Mapping[str, int] | None = None,
    already_read: Collection[NextMessage] = (),
    unreadable: Collection[Unreadable] = (),
) -> Polled:
    """Asks for one cycle's share. Raises GatewayError when no name server answers.

    `expected`: names of brokers that were listed before; where a name server is silent, a missing one may be its.
    `digests`: by group, of what is committed as the rows have it; a group of which nothing moved is not told again.
    `already_read`: next messages whose store time the rows have; `unreadable`: places where none can be read.
    """
    urgent = urgent or Urgent()
    failures = Failures()
    listed = await gateway.known_brokers()
    known = listed.brokers
    if set(expected) - {broker.broker_name for broker in known}:
        failures.reasons |= listed.silent
    masters = {broker.master_addr: broker.broker_name for broker in known if broker.master_addr}
    tables = await gateway.tables(masters, failures)
    left = max(0, budget - gateway.request_count)

    read_count = min(READS_PER_CYCLE_MAX, left // 8) if urgent.groups else 0
    turn = turns.turn(_topic_homes(tables), _group_homes(tables), len(masters), left - read_count, cursors, urgent)
    stats = await gateway.topic_stats(turn.topics, failures)
    ends = {queue: end for queues in stats.values() for queue, end in queues.items()}
    waiting = readable(dict(waiting_messages(masters, tables, ends, frozenset(urgent.groups))), unreadable)
    places = {one: waiting[one] for one in to_read(waiting, urgent, already_read, read_count)}
    connections = _whole_answers(turn.groups, await gateway.consumer_connections(turn.groups, failures))
    unread = Failures(dict(failures.reasons))  # a broker that failed is not asked again
    stored_at = await gateway.messages.store_times(places.values(), unread, timeout_s=STORE_TIMES_TIMEOUT_S)
    without = [one for one, place in places.items() if place in stored_at and stored_at[place] is None]

    return Polled(
        rocketmq_name=next((broker.cluster for broker in known), ""),
        brokers=_brokers(known, failures),
        observation=_observation(
            masters,
            tables,
            ends,
            connections,
            digests or {},
            [(one, moment) for one, place in places.items() if (moment := stored_at.get(place)) is not None],
            now,
            is_complete=not failures.reasons and bool(masters),
        ),
        cursors=turn.cursors,
        request_count=gateway.request_count,
        error=failures.error(),
        unreadable=remembered(unreadable, (Unreadable(one.queue, places[one].queue_offset) for one in without)),
    )


def _topic_homes(tables: Mapping[str, BrokerTables]) -> dict[str, list[str]]:
    """Returns topic → addresses of those to ask for; a retry topic only when a group has committed offsets."""
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for address, table in tables.items():
        read = {topic for topic, _ in table.committed}
        for topic in table.topics:
            if topic in read or not is_retry_topic(topic):
                homes[topic].append(address)
    return homes


def _group_homes(tables: Mapping[str, BrokerTables]) -> dict[str, list[str]]:
    """Returns group → addresses. A member connects to each broker that holds a topic of its group, so all are asked."""
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for address, table in tables.items():
        for group in table.groups:
            homes[group].append(address)
    return homes


def _whole_answers(
    asked: Iterable[tuple[str, str]], answers: Mapping[tuple[str, str], ConsumerConnection | None]
) -> dict[tuple[str, str], ConsumerConnection | None]:
    """Leaves out the groups for which some broker did not answer: their missing members are not gone."""
    in_doubt = {group for address, group in asked if (address, group) not in answers}
    return {pair: answer for pair, answer in answers.items() if pair[1] not in in_doubt}


def _brokers(known: Sequence[BrokerData], failures: Failures) -> tuple[BrokerObserved, ...]:
    return tuple(
        BrokerObserved(
            name=broker.broker_name,
            broker_id=int(broker_id),
            address=address,
            error=failures.reasons.get(address, ""),
        )
        for broker in known
        for broker_id, address in broker.broker_addrs.items()
    )


def _observation(
    masters: Mapping[str, str],
    tables: Mapping[str, BrokerTables],
    ends: Mapping[MessageQueue, TopicOffset],
    connections: Mapping[tuple[str, str], ConsumerConnection | None],
    digests: Mapping[str, int],
    stored_at: Sequence[tuple[NextMessage, datetime]],
    now: datetime,
    *,
    is_complete: bool,
) -> Observation:
    moved = {
        group: digest for group, digest in committed_digests(masters, tables).items() if digest != digests.get(group, 0)
    }
    # A queue that is told twice is what was told last.
    committed = [
        CommitObserved(group, MessageQueue(topic, masters[address], queue_id), committed_offset)
        for address, table in tables.items()
        for (topic, group), queues in table.committed.items()
        if group in moved
        for queue_id, committed_offset in queues.items()
    ]
    committed += [CommitObserved(*one, behind_since=moment) for one, moment in stored_at]
    return Observation(
        at=now,
        is_complete=is_complete,
        topics=_topics(tables.values()) if is_complete else (),
        queues=tuple(
            QueueObserved(queue, offset.min_offset, offset.max_offset, moment_or_none(offset.last_update_timestamp))
            for queue, offset in ends.items()
        ),
        groups=tuple(_groups(tables.values(), connections)),
        committed=tuple(committed),
        digests=moved,
    )


def committed_digests(masters: Mapping[str, str], tables: Mapping[str, BrokerTables]) -> dict[str, int]:
    """Returns, by group, a digest of all that it has committed; never 0. `masters`: address → name.

    Long enough that two states of a group never have the same one.
    """
    words: defaultdict[str, list[str]] = defaultdict(list)
    for address, table in tables.items():
        for (topic, group), queues in table.committed.items():
            words[group].append(f"{masters[address]} {topic} {sorted(queues.items())}")
    return {group: _digest("\n".join(sorted(of_group))) for group, of_group in words.items()}


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), signed=True) or 1


def _topics(tables: Iterable[BrokerTables]) -> tuple[TopicObserved, ...]:
    """Returns sums over brokers; known only when all of them answered."""
    homes: defaultdict[str, list[TopicConfig]] = defaultdict(list)
    for table in tables:
        for name, config in table.topics.items():
            homes[name].append(config)
    return tuple(
        TopicObserved(
            name,
            sum(config.read_queue_nums for config in configs),
            sum(config.write_queue_nums for config in configs),
            _either(config.perm for config in configs),
        )
        for name, configs in homes.items()
    )


def _either(perms: Iterable[int]) -> int:
    together = 0
    for perm in perms:
        together |= perm
    return together


def _groups(
    tables: Iterable[BrokerTables], connections: Mapping[tuple[str, str], ConsumerConnection | None]
) -> Iterable[GroupObserved]:
    answers: defaultdict[str, list[ConsumerConnection | None]] = defaultdict(list)
    for (_, group), connection in connections.items():
        answers[group].append(connection)
    settings: dict[str, GroupSettingsObserved | None] = {}
    for table in tables:
        for _, group in table.committed:
            settings.setdefault(group, None)
        for group, config in table.groups.items():
            settings[group] = GroupSettingsObserved(config.consume_enable, config.retry_max_times)
    for group, setting in settings.items():
        yield _group(group, setting, answers.get(group))


def _group(
    name: str, settings: GroupSettingsObserved | None, answers: Sequence[ConsumerConnection | None] | None
) -> GroupObserved:
    """Puts the brokers' answers together: a client that is connected to any of them is a member."""
    if answers is None:
        return GroupObserved(name=name, settings=settings)
    members: dict[str, MemberObserved] = {}
    subscriptions: dict[SubscriptionKey, int] = {}
    consumption = None
    for answer in answers:
        if answer is None:
            continue
        consumption = ConsumptionObserved(
            answer.message_model or "", answer.consume_type or "", answer.consume_from_where or ""
        )
        for client in answer.connection_set:
            members[client.client_id] = MemberObserved(
                client_id=client.client_id,
                address=client.client_addr,
                language=client.language,
                version=client.version,
            )
        for entry in answer.subscription_table.values():
            key = SubscriptionKey("", entry.topic, entry.sub_string, entry.expression_type)
            subscriptions[key] = entry.sub_version
    return GroupObserved(
        name=name,
        settings=settings,
        consumption=consumption,
        members=tuple(members.values()),
        subscriptions=subscriptions,
    )
