"""Where the members of one group do not want the same, which of them is the odd one, and what follows. Pure.

A group's members must all subscribe to the same topics with the same expressions, and consume in the same way; nothing
in the protocol holds them to it. A broker keeps one table per group (RocketMQ's `ConsumerGroupInfo`), which each
heartbeat writes: of two expressions for a topic the larger `sub_version` stays, a topic that a heartbeat leaves out is
gone for all until the next heartbeat that names it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from remoting.wire.names import is_retry_topic

ALL = "*"
# How findings name a member that is only asked about: no client id has parentheses.
NEW_MEMBER = "(new)"
_LAST = datetime.max.replace(tzinfo=UTC)
TAG = "TAG"


class Wanted(NamedTuple):
    """What somebody subscribes to at one topic. `since`: when it was first seen so."""

    expression: str
    expression_type: str
    sub_version: int = 0
    since: datetime | None = None

    @property
    def meaning(self) -> str:
        """Returns the same text for expressions that mean the same: `B||A` and `A || B`."""
        text = self.expression.strip()
        if self.expression_type not in ("", TAG):
            return f"{self.expression_type} {text}"
        tags = sorted({tag.strip() for tag in text.split("||") if tag.strip()})
        return ALL if not tags or ALL in tags else " || ".join(tags)


class Source(StrEnum):
    """How it is known what a member wants."""

    OWN_ANSWER = "own_answer"
    HEARTBEAT = "heartbeat"
    NOT_KNOWN = "not_known"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """What is known of one member. `topics` None: not what it subscribes to. "" and None: it did not tell.

    `joined_at` None: it is not there yet.
    """

    client_id: str
    joined_at: datetime | None
    topics: Mapping[str, Wanted] | None
    source: Source = Source.NOT_KNOWN
    seen_at: datetime | None = None
    message_model: str = ""
    is_orderly: bool | None = None
    consume_from_where: str = ""

    @classmethod
    def wanting(
        cls,
        topics: Mapping[str, Wanted],
        *,
        message_model: str = "",
        is_orderly: bool | None = None,
        consume_from_where: str = "",
    ) -> MemberView:
        """Returns a member that is not there yet and would come last."""
        return cls(
            client_id=NEW_MEMBER,
            joined_at=None,
            topics=topics,
            message_model=message_model,
            is_orderly=is_orderly,
            consume_from_where=consume_from_where,
        )


class FindingKind(StrEnum):
    """In which way members differ, the gravest first."""

    MODEL = "model"
    TOPICS = "topics"
    EXPRESSION = "expression"
    ORDER = "order"
    START = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Members that differ from the others in one respect.

    `odd` are the fewer ones; of equally many, those that joined later. `marked` are the odd ones where most members say
    the same, and all that are compared where no word has a majority. `by_odd` and `by_rest` are what they say: an
    expression ("" for "not subscribed"), or the word of the model, order or start. `in_force`: the expression that the
    broker keeps for the topic, `winner` the member that it comes from; "" where that is not known.
    """

    kind: FindingKind
    topic: str = ""
    odd: tuple[str, ...]
    marked: tuple[str, ...]
    member_count: int
    by_odd: str
    by_rest: str
    in_force: str = ""
    winner: str = ""
    since: datetime | None = None

    @property
    def is_tie(self) -> bool:
        """Tells whether no side is in the majority, so that it is not known which is wrong."""
        return len(self.marked) > len(self.odd)


def findings(members: Sequence[MemberView], table: Mapping[str, Wanted]) -> list[Finding]:
    """Returns where the members differ, the gravest first. `table` is what the broker keeps for the whole group.

    Members that are not known do not count; one member alone is never in conflict.
    """
    found = [*_of_ways(members), *_of_topics([member for member in members if member.topics is not None], table)]
    order = list(FindingKind)
    return sorted(found, key=lambda finding: (order.index(finding.kind), finding.topic))


def _of_topics(members: Sequence[MemberView], table: Mapping[str, Wanted]) -> Iterable[Finding]:
    names = {topic for member in members for topic in member.topics or () if not is_retry_topic(topic)}
    for topic in sorted(names):
        wanted = {member.client_id: (member.topics or {}).get(topic) for member in members}
        by_meaning = _by_meaning(members, wanted)
        if "" in by_meaning and len(by_meaning) > 1:
            subscribed = [member for meaning, some in by_meaning.items() if meaning for member in some]
            split = {"": by_meaning[""], "subscribed": subscribed}
            yield _finding(FindingKind.TOPICS, topic, split, wanted, table, members)
        by_meaning.pop("", None)
        if len(by_meaning) > 1:
            yield _finding(FindingKind.EXPRESSION, topic, by_meaning, wanted, table, members)


def _finding(
    kind: FindingKind,
    topic: str,
    by_meaning: Mapping[str, Sequence[MemberView]],
    wanted: Mapping[str, Wanted | None],
    table: Mapping[str, Wanted],
    members: Sequence[MemberView],
) -> Finding:
    most = _most(by_meaning)
    odd = [member for meaning, some in by_meaning.items() if meaning != most for member in some]
    rest = by_meaning[most]
    begun = [_since(member, wanted[member.client_id]) for member in odd]
    kept = table.get(topic)
    return Finding(
        kind=kind,
        topic=topic,
        odd=_client_ids(odd),
        marked=_marked(by_meaning, odd),
        member_count=len(members),
        by_odd=_expression(wanted[odd[0].client_id]),
        by_rest=_expression(wanted[rest[0].client_id]),
        in_force=kept.expression if kept else "",
        winner=_winner(kept, wanted),
        since=_earliest(begun),
    )


def _by_meaning(members: Iterable[MemberView], wanted: Mapping[str, Wanted | None]) -> dict[str, list[MemberView]]:
    return _grouped(members, lambda member: _meaning(wanted[member.client_id]))


# What members say of the way in which they consume, each with what differs then.
_WAYS: Mapping[FindingKind, Callable[[MemberView], str]] = {
    FindingKind.MODEL: lambda member: member.message_model,
    FindingKind.ORDER: lambda member: {True: "orderly", False: "concurrently", None: ""}[member.is_orderly],
    FindingKind.START: lambda member: member.consume_from_where,
}


def _of_ways(members: Sequence[MemberView]) -> Iterable[Finding]:
    for kind, way in _WAYS.items():
        told = [member for member in members if way(member)]
        by_way = _grouped(told, way)
        if len(by_way) < 2:
            continue
        most = _most(by_way)
        odd = [member for word, some in by_way.items() if word != most for member in some]
        yield Finding(
            kind=kind,
            odd=_client_ids(odd),
            marked=_marked(by_way, odd),
            member_count=len(told),
            by_odd=way(odd[0]),
            by_rest=most,
            since=_earliest(member.joined_at for member in odd),
        )


def _grouped(members: Iterable[MemberView], word: Callable[[MemberView], str]) -> dict[str, list[MemberView]]:
    found: defaultdict[str, list[MemberView]] = defaultdict(list)
    for member in members:
        found[word(member)].append(member)
    return dict(found)


def _most(alike: Mapping[str, Collection[MemberView]]) -> str:
    """Returns what most members say; of equally many, those of which one was there first."""
    first = {word: _earliest(member.joined_at for member in some) or _LAST for word, some in alike.items()}
    return min(alike, key=lambda word: (-len(alike[word]), first[word], word))


def _marked(alike: Mapping[str, Collection[MemberView]], odd: Iterable[MemberView]) -> tuple[str, ...]:
    """Returns whom to mark: the odd ones, or everybody where two words have equally many members and none has more."""
    first, second, *_ = sorted((len(some) for some in alike.values()), reverse=True)
    return _client_ids(member for some in alike.values() for member in some) if first == second else _client_ids(odd)


def _earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _meaning(wanted: Wanted | None) -> str:
    return wanted.meaning if wanted is not None else ""


def _expression(wanted: Wanted | None) -> str:
    return (wanted.expression or ALL) if wanted is not None else ""


def _since(member: MemberView, wanted: Wanted | None) -> datetime | None:
    return wanted.since if wanted is not None and wanted.since is not None else member.joined_at


def _winner(kept: Wanted | None, wanted: Mapping[str, Wanted | None]) -> str:
    """Returns the member whose expression the broker keeps: that of the same version, else one that means the same."""
    if kept is None:
        return ""
    alike = [(one, client_id) for client_id, one in wanted.items() if one is not None and one.meaning == kept.meaning]
    exact = [client_id for one, client_id in alike if one.sub_version == kept.sub_version]
    if exact:
        return min(exact)
    return max(alike, key=lambda pair: (pair[0].sub_version, pair[1]))[1] if alike else ""


def _client_ids(members: Iterable[MemberView]) -> tuple[str, ...]:
    return tuple(sorted(member.client_id for member in members))
