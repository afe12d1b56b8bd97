"""The tables on a group's tabs: its queues, its members with the queues that each of them pulls, its settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from mqadmin.actions.present import OnBrokers
from mqadmin.clusters.figures import NEVER_TOLD, Figure
from mqadmin.clusters.held_queues import in_flight_sum, read
from mqadmin.clusters.models import Group, Member, MemberProgress, QueueOffset
from mqadmin.clusters.progress import queue_of
from mqadmin.console.action_values import LABELS, value_text
from mqadmin.groups.settings import default_values
from mqadmin.lag.broadcasting import MemberLag
from mqadmin.lag.in_flight import Held
from mqadmin.lag.queue_verdicts import QueueMoment, judge_queue
from mqadmin.lag.verdicts import Judgement, reason
from remoting.wire.bodies.message_queue import MessageQueue

# A queue whose figures are older than the newest by more says so in its own row.
SAME_AGE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class QueueLine:
    """`held`: what its member said of it. `is_older` than the newest of the table, or never updated."""

    queue: QueueOffset
    judgement: Judgement
    held: Held | None = None
    is_older: bool = False

    @property
    def reason(self) -> str:
        return reason(self.judgement.rule, self.judgement.numbers)

    @property
    def in_flight(self) -> Figure:
        return NEVER_TOLD if self.held is None else Figure(self.held.of.in_flight, self.held.told_at)


@dataclass(frozen=True, slots=True)
class TopicQueues:
    """The queues of one topic. `broker_name`: the broker that has all of them; "" where several do."""

    topic_name: str
    broker_name: str
    lines: Sequence[QueueLine]


@dataclass(frozen=True, slots=True)
class QueueTable:
    """`updated_at`: of the newest figures. `told_at`: the oldest of the members' words; None where none told any."""

    topics: Sequence[TopicQueues]
    updated_at: datetime | None
    told_at: datetime | None


def queue_table(
    group: Group,
    queues: Sequence[QueueOffset],
    now: datetime,
    held: Mapping[MessageQueue, Held] | None = None,
    past: Mapping[MessageQueue, Sequence[QueueMoment]] | None = None,
) -> QueueTable:
    """Keeps the selector's order (topic, broker, queue id), with the retry topic moved to the end.

    `held`, `past`: what members said of their queues, and the samples of these, where they are known.
    """
    known = [queue.true_until for queue in queues if queue.true_until is not None]
    updated_at = max(known, default=None)
    lines = [
        QueueLine(
            queue,
            judge_queue(group, queue, now, held, (past or {}).get(queue_of(queue), ())),
            (held or {}).get(queue_of(queue)),
            is_older=queue.true_until is None or (updated_at is not None and updated_at - queue.true_until > SAME_AGE),
        )
        for queue in sorted(queues, key=lambda queue: queue.is_retry)
    ]
    told = [line.held.told_at for line in lines if line.held is not None and line.in_flight.value is not None]
    return QueueTable(
        [_topic_queues(list(some)) for _, some in groupby(lines, key=lambda line: line.queue.topic_name)],
        updated_at,
        min(told, default=None),
    )


def _topic_queues(lines: Sequence[QueueLine]) -> TopicQueues:
    brokers = {line.queue.broker_name for line in lines}
    return TopicQueues(lines[0].queue.topic_name, brokers.pop() if len(brokers) == 1 else "", lines)


@dataclass(frozen=True, slots=True)
class MemberLine:
    """`queues`: each topic with the names of its queues. `lag`: the sum over them; None when one is not known.

    `queues_said_at`: when the member itself said which these are; None where the broker saw it pull them.
    `own`: how far it is by its own word, where the group broadcasts. `in_flight`: what it has pulled and not finished,
    by its own word of `told_at`; None where it said nothing.
    """

    member: Member
    queues: list[tuple[str, list[str]]]
    lag: int | None
    queues_said_at: datetime | None = None
    own: MemberLag | None = None
    in_flight: int | None = None
    told_at: datetime | None = None


def member_lines(
    members: Iterable[Member],
    queues: Iterable[QueueOffset],
    progress: Mapping[int, MemberProgress],
    own: Mapping[int, MemberLag],
) -> list[MemberLine]:
    """Adds to each member its queues by topic, and their lag. `progress`: what members said of their queues, by key."""
    by_name = {(queue.topic_name, queue.broker_name, queue.queue_id): queue for queue in queues}
    lines = (_member_line(member, by_name, progress.get(member.pk)) for member in members)
    return [_by_its_own_word(line, own[line.member.pk]) if line.member.pk in own else line for line in lines]


def _by_its_own_word(line: MemberLine, own: MemberLag) -> MemberLine:
    return replace(line, lag=own.lag, queues_said_at=own.told_at, own=own)


def _member_line(
    member: Member, by_name: Mapping[tuple[str, str, int], QueueOffset], told: MemberProgress | None
) -> MemberLine:
    pulled, said_at = list(member.queues), None
    if told is not None and not pulled:
        said = [by_name.get((queue.topic, queue.broker_name, queue.queue_id)) for queue in read(told.queues)]
        pulled, said_at = [queue for queue in said if queue is not None], told.told_at
    return MemberLine(
        member,
        queues_by_topic(pulled),
        _lag(pulled),
        said_at if pulled else None,
        in_flight=None if told is None else in_flight_sum(read(told.queues).values()),
        told_at=None if told is None else told.told_at,
    )


def queues_by_topic(queues: Iterable[QueueOffset]) -> list[tuple[str, list[str]]]:
    """Groups the queues by topic, in alphabetical order; the retry topic, which every member reads, comes last."""
    found: defaultdict[tuple[bool, str], list[QueueOffset]] = defaultdict(list)
    for queue in queues:
        found[queue.is_retry, queue.topic_name].append(queue)
    return [(topic, _queue_names(found[is_retry, topic])) for is_retry, topic in sorted(found)]


def _queue_names(queues: list[QueueOffset]) -> list[str]:
    """Names the queues: their ids where all are on one broker, else with the broker's name."""
    if len({queue.broker_name for queue in queues}) == 1:
        return [str(queue.queue_id) for queue in queues]
    return [f"{queue.broker_name} {queue.queue_id}" for queue in queues]


def _lag(queues: Iterable[QueueOffset]) -> int | None:
    total = 0
    for queue in queues:
        if queue.lag is None:
            return None
        total += queue.lag
    return total


@dataclass(frozen=True, slots=True)
class SettingLine:
    """A setting of a group in words. `values`: by broker where they differ, else one for "" (all of them)."""

    name: str
    label: str
    values: list[tuple[str, str]]
    default: str
    is_changed: bool

    @property
    def is_different(self) -> bool:
        """Tells whether brokers have it differently."""
        return len(self.values) > 1


def setting_lines(found: OnBrokers) -> list[SettingLine]:
    """Returns the settings that brokers have of a group, beside those of a new one."""
    having, differing, defaults = found.having, found.differing, default_values()
    if not having:
        return []
    first = next(iter(having.values()))
    return [
        SettingLine(
            name,
            str(LABELS.get(name, name)),
            [(broker, value_text(name, values[name])) for broker, values in having.items()]
            if name in differing
            else [("", value_text(name, first[name]))],
            value_text(name, default),
            any(values[name] != default for values in having.values()),
        )
        for name, default in defaults.items()
    ]
