"""Makes what strangers named fit the database: a client may call itself anything, and one of them must not stop all.

PostgreSQL keeps no NUL, and no text that is longer than its column. Topics, groups and brokers under a name that no
RocketMQ broker gives out are left out. A member is a member whatever it calls itself: its texts are cut, and a mark
stands for NUL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mqadmin.clusters.models import NAME_CHARS_MAX
from mqadmin.clusters.models.member import ADDRESS_CHARS_MAX, CLIENT_ID_CHARS_MAX, START_CHARS_MAX, WORD_CHARS_MAX
from mqadmin.observing.observation import (
    BrokerObserved,
    GroupObserved,
    MemberObserved,
    Observation,
    ObservedEvent,
    SubscriptionKey,
)

# Stands for NUL.
NUL_MARK = "\N{SYMBOL FOR NULL}"


def keepable_brokers(observed: Iterable[BrokerObserved]) -> list[BrokerObserved]:
    """Returns those whose name and address can be kept."""
    return [replace(one, error=_text(one.error)) for one in observed if _is_name(one.name) and _is_name(one.address)]


def keepable(observation: Observation) -> Observation:
    """Returns what of the observation can be kept."""
    return replace(
        observation,
        topics=tuple(one for one in observation.topics if _is_name(one.name)),
        gone_topics=tuple(filter(_is_name, observation.gone_topics)),
        queues=tuple(one for one in observation.queues if _is_name(one.queue.topic)),
        groups=tuple(_group(one) for one in observation.groups if _is_name(one.name)),
        gone_groups=tuple(filter(_is_name, observation.gone_groups)),
        committed=tuple(one for one in observation.committed if _is_name(one.group) and _is_name(one.queue.topic)),
        events=tuple(_event(one) for one in observation.events if _is_name(one.group)),
    )


def _is_name(name: str) -> bool:
    return len(name) <= NAME_CHARS_MAX and "\0" not in name


def _text(text: str, chars_max: int | None = None) -> str:
    return text.replace("\0", NUL_MARK)[:chars_max]


def _group(group: GroupObserved) -> GroupObserved:
    if group.members is None and not group.subscriptions and not group.owners:
        return group
    return replace(
        group,
        members=None if group.members is None else tuple(map(_member, group.members)),
        subscriptions=None
        if group.subscriptions is None
        else {_key(key): version for key, version in group.subscriptions.items()},
        owners=None
        if group.owners is None
        else {
            queue: replace(owner, client_id=_text(owner.client_id, CLIENT_ID_CHARS_MAX))
            for queue, owner in group.owners.items()
            if _is_name(queue.topic)
        },
    )


def _member(member: MemberObserved) -> MemberObserved:
    return replace(
        member,
        client_id=_text(member.client_id, CLIENT_ID_CHARS_MAX),
        address=_text(member.address, ADDRESS_CHARS_MAX),
        language=_text(member.language, WORD_CHARS_MAX),
        message_model=_text(member.message_model, WORD_CHARS_MAX),
        consume_from_where=_text(member.consume_from_where, START_CHARS_MAX),
        differences=[_document(one) for one in member.differences],
    )


def _document(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the texts and lists of texts of a document with a mark for each NUL."""
    return {name: _marked(value) for name, value in values.items()}


def _marked(value: Any) -> Any:
    if isinstance(value, list):
        return [_marked(one) for one in value]
    return _text(value) if isinstance(value, str) else value


def _key(key: SubscriptionKey) -> SubscriptionKey:
    return SubscriptionKey(
        _text(key.client_id, CLIENT_ID_CHARS_MAX),
        _text(key.topic, NAME_CHARS_MAX),
        _text(key.expression),
        _text(key.expression_type, WORD_CHARS_MAX),
    )


def _event(event: ObservedEvent) -> ObservedEvent:
    return replace(
        event,
        queue=event.queue if event.queue is not None and _is_name(event.queue.topic) else None,
        client_id=_text(event.client_id, CLIENT_ID_CHARS_MAX),
        from_client=_text(event.from_client, CLIENT_ID_CHARS_MAX),
        to_client=_text(event.to_client, CLIENT_ID_CHARS_MAX),
    )
