"""The tables on a group's tabs: its queues, its members with the queues that each of them pulls, its settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mqadmin.actions.present import OnBrokers
from mqadmin.clusters.models import Group, Member, QueueOffset
from mqadmin.console.action_values import LABELS, value_text
from mqadmin.groups.settings import default_values
from mqadmin.lag.queue_verdicts import judge_queue
from mqadmin.lag.verdicts import Judgement, reason
from mqadmin.subscriptions.models import MemberAnswer


@dataclass(frozen=True, slots=True)
class QueueLine:
    """`is_first` of its topic: the topic's name is not repeated on the others."""

    queue: QueueOffset
    is_first: bool
    judgement: Judgement

    @property
    def reason(self) -> str:
        return reason(self.judgement.rule, self.judgement.numbers)


def queue_lines(group: Group, queues: Sequence[QueueOffset], now: datetime) -> list[QueueLine]:
    """Keeps the selector's order (topic, broker, queue id), with the retry topic moved to the end."""
    ordered = sorted(queues, key=lambda queue: queue.is_retry)
    return [
        QueueLine(
            queue,
            is_first=index == 0 or ordered[index - 1].topic_name != queue.topic_name,
            judgement=judge_queue(group, queue, now),
        )
        for index, queue in enumerate(ordered)
    ]


@dataclass(frozen=True, slots=True)
class MemberLine:
    """`queues`: each topic with the names of its queues. `lag`: the sum over them; None when one is not known.

    `queues_said_at`: when the member itself said which these are; None where the broker saw it pull them.
    """

    member: Member
    queues: list[tuple[str, list[str]]]
    lag: int | None
    queues_said_at: datetime | None = None


def member_lines(
    members: Iterable[Member], queues: Iterable[QueueOffset], answers: Mapping[int, MemberAnswer]
) -> list[MemberLine]:
    """Adds to each member its queues by topic, and their lag. `answers`: what members said of themselves, by key."""
    by_name = {(queue.topic_name, queue.broker_name, queue.queue_id): queue for queue in queues}
    return [_member_line(member, by_name, answers.get(member.pk)) for member in members]


def _member_line(
    member: Member, by_name: Mapping[tuple[str, str, int], QueueOffset], answer: MemberAnswer | None
) -> MemberLine:
    pulled, said_at = list(member.queues), None
    if answer is not None and not pulled:
        said = [by_name.get((topic, broker, queue_id)) for topic, broker, queue_id in answer.queues]
        pulled, said_at = [queue for queue in said if queue is not None], answer.answered_at
    return MemberLine(member, queues_by_topic(pulled), _lag(pulled), said_at if pulled else None)


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
