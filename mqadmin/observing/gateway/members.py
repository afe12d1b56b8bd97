"""What members of groups say of themselves: a broker relays the question (GET_CONSUMER_RUNNING_INFO, 307)."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import msgspec

from mqadmin.clusters.moments import moment_or_none
from remoting.client.admin import Admin
from remoting.client.admin.partial import ask_each
from remoting.client.errors import BrokerRefused, ClientError, NotConnected, NoTurn
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import (
    PROP_CONSUMEORDERLY,
    PROP_CONSUMER_START_TIMESTAMP,
    ConsumerRunningInfo,
    ProcessQueueInfo,
)
from remoting.wire.codes import ResponseCode

# Of one member: what a hostile one could say at length.
SUBSCRIPTIONS_MAX = 1000
QUEUES_MAX = 5000
EXPRESSION_CHARS_MAX = 4000
# A round; who was asked and has not answered by then did not answer.
ROUND_S = 12.0
# Of a round: who had no turn by then is not asked in it, so whoever is asked has some seconds to answer.
TURNS_S = 7.0
# A member is asked through that many of the brokers: it may be connected to some of them only.
BROKERS_TRIED_MAX = 3


class MemberPlace(NamedTuple):
    """Whom to ask."""

    group: str
    client_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberTold:
    """What a member said; "" and None for what it did not say."""

    subscriptions: tuple[SubscriptionData, ...]
    queues: tuple[MessageQueue, ...]
    message_model: str
    consume_from_where: str
    is_orderly: bool | None
    started_at: datetime | None
    # By queue: how far it is, and what it has pulled and not finished.
    progress: Mapping[MessageQueue, ProcessQueueInfo] = field(default_factory=dict)
    # How long one call of its listener may take.
    consume_timeout_s: int | None = None
    # Topics of which messages failed within the last minute.
    failing_topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MembersAsked:
    """Each member that was asked is in one of them: what it told, or why it did not.

    Who is in none had no turn in this round, since others were slow to answer.
    """

    told: Mapping[MemberPlace, MemberTold]
    reasons: Mapping[MemberPlace, str]


class MemberRequests:
    """Questions to members."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def ask(
        self,
        members: Collection[MemberPlace],
        masters: Sequence[str],
        *,
        round_s: float = ROUND_S,
        turns_s: float = TURNS_S,
    ) -> MembersAsked:
        """Asks members within `round_s`, in their order, through the brokers of `masters` (addresses) that know them.

        Few are asked at once, and a silent one keeps its place for ten seconds: so who had no turn within `turns_s` is
        not asked.
        """
        turns_until_s = time.monotonic() + turns_s

        async def one(place: MemberPlace) -> ConsumerRunningInfo:
            return await self._running_info(place, masters[:BROKERS_TRIED_MAX], turns_until_s)

        partial = await ask_each(members, one, timeout_ms=round(round_s * 1000))
        silent = {place: error for place, error in partial.errors.items() if not isinstance(error, NoTurn)}
        return MembersAsked(
            {place: _told(info) for place, info in partial.answers.items()},
            {place: str(error) or type(error).__name__ for place, error in silent.items()},
        )

    async def _running_info(
        self, place: MemberPlace, masters: Sequence[str], turns_until_s: float
    ) -> ConsumerRunningInfo:
        refused: ClientError = ClientError("no broker of the cluster is known")
        for address in masters:
            left_ms = max(0, round((turns_until_s - time.monotonic()) * 1000))
            try:
                return await self._admin.clients.running_info(
                    address, place.group, place.client_id, turn_timeout_ms=left_ms
                )
            except NotConnected as error:
                refused = error
            except BrokerRefused as error:
                refused = error
                if error.code == ResponseCode.CONSUME_MSG_TIMEOUT:
                    break  # it is connected there, and silent: no other broker would hear more
        raise refused


def _told(info: ConsumerRunningInfo) -> MemberTold:
    words, queues = info.properties, tuple(sorted(info.queues))[:QUEUES_MAX]
    return MemberTold(
        subscriptions=tuple(
            msgspec.structs.replace(entry, sub_string=entry.sub_string[:EXPRESSION_CHARS_MAX])
            for entry in info.subscriptions[:SUBSCRIPTIONS_MAX]
        ),
        queues=queues,
        message_model=words.get("messageModel", "")[:20],
        consume_from_where=words.get("consumeFromWhere", "")[:60],
        is_orderly={"true": True, "false": False}.get(words.get(PROP_CONSUMEORDERLY, "").lower()),
        started_at=_started_at(words.get(PROP_CONSUMER_START_TIMESTAMP, "")),
        progress={queue: info.queues[queue] for queue in queues},
        consume_timeout_s=_consume_timeout_s(words.get("consumeTimeout", "")),
        failing_topics=frozenset(topic for topic, status in info.statuses.items() if status.consume_failed_tps > 0),
    )


def _consume_timeout_s(minutes: str) -> int | None:
    """Returns Java's setting, which is in minutes, in seconds."""
    return 60 * int(minutes) if minutes.isascii() and minutes.isdigit() and len(minutes) < 7 else None


def _started_at(text: str) -> datetime | None:
    return moment_or_none(int(text)) if text.isascii() and text.isdigit() and len(text) < 20 else None
