"""What members of groups say of themselves: a broker relays the question (GET_CONSUMER_RUNNING_INFO, 307)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec

from mqadmin.clusters.moments import moment_or_none
from remoting.client.admin import Admin
from remoting.client.admin.partial import ask_each
from remoting.client.errors import BrokerRefused, ClientError
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import (
    PROP_CONSUMEORDERLY,
    PROP_CONSUMER_START_TIMESTAMP,
    ConsumerRunningInfo,
)

# Of one member: what a hostile one could say at length.
SUBSCRIPTIONS_MAX = 1000
QUEUES_MAX = 5000
EXPRESSION_CHARS_MAX = 4000
# A round; who has not answered by then did not answer.
ROUND_S = 12.0
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


@dataclass(frozen=True, slots=True)
class MembersAsked:
    """Each member that was asked is in one of them: what it told, or why it did not."""

    told: Mapping[MemberPlace, MemberTold]
    reasons: Mapping[MemberPlace, str]


class MemberRequests:
    """Questions to members."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def ask(
        self, members: Collection[MemberPlace], masters: Sequence[str], *, round_s: float = ROUND_S
    ) -> MembersAsked:
        """Asks all members within `round_s`, through the brokers of `masters` (addresses) that know them."""

        async def one(place: MemberPlace) -> ConsumerRunningInfo:
            return await self._running_info(place, masters[:BROKERS_TRIED_MAX])

        partial = await ask_each(members, one, timeout_ms=round(round_s * 1000))
        return MembersAsked(
            {place: _told(info) for place, info in partial.answers.items()},
            {place: str(error) or type(error).__name__ for place, error in partial.errors.items()},
        )

    async def _running_info(self, place: MemberPlace, masters: Sequence[str]) -> ConsumerRunningInfo:
        refused: ClientError = ClientError("no broker of the cluster is known")
        for address in masters:
            try:
                return await self._admin.clients.running_info(address, place.group, place.client_id)
            except BrokerRefused as error:
                refused = error
        raise refused


def _told(info: ConsumerRunningInfo) -> MemberTold:
    words = info.properties
    return MemberTold(
        subscriptions=tuple(
            msgspec.structs.replace(entry, sub_string=entry.sub_string[:EXPRESSION_CHARS_MAX])
            for entry in info.subscriptions[:SUBSCRIPTIONS_MAX]
        ),
        queues=tuple(sorted(info.queues))[:QUEUES_MAX],
        message_model=words.get("messageModel", "")[:20],
        consume_from_where=words.get("consumeFromWhere", "")[:60],
        is_orderly={"true": True, "false": False}.get(words.get(PROP_CONSUMEORDERLY, "").lower()),
        started_at=_started_at(words.get(PROP_CONSUMER_START_TIMESTAMP, "")),
    )


def _started_at(text: str) -> datetime | None:
    return moment_or_none(int(text)) if text.isascii() and text.isdigit() and len(text) < 20 else None
