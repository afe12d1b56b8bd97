"""What a replay would do: looked up, and asked of the brokers. What is said of it: `dry_run_warnings.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from mqadmin.actions.brokers import ask_cluster
from mqadmin.actions.declaration import ActionRefused
from mqadmin.clusters.models import Cluster, Subscription
from mqadmin.flows.words import readers_words
from mqadmin.observing.gateway import Failures, Gateway
from mqadmin.replays.choosing import Chosen, chosen_of_file, chosen_of_index
from mqadmin.replays.outgoing import NotToBeSent, destination
from mqadmin.replays.states import Target


@dataclass(frozen=True, slots=True)
class DryRun:
    """`chosen`: what would be sent; `topics`: where to; `closed`: those of them that no broker takes messages for.

    `unsubscribed`: origin topics that the group does not subscribe to. `member_count` None: not known. `is_ordered`:
    its members consume in order. `silent`: who did not answer. `readers`: who reads each topic, in words, unless it
    goes to the group alone.
    """

    selection: Mapping[str, Any]
    until_id: int
    target: Target
    chosen: Chosen
    topics: tuple[str, ...]
    closed: tuple[str, ...] = ()
    unsubscribed: tuple[str, ...] = ()
    member_count: int | None = None
    is_ordered: bool = False
    silent: tuple[str, ...] = field(default=())
    readers: tuple[str, ...] = ()


def dry_run(
    cluster: Cluster, group: str, selection: Mapping[str, Any], *, target: Target, target_topic: str, until_id: int
) -> DryRun:
    """Raises ActionRefused for an ordered group's retry topic, ActionUnavailable when no name server answers."""
    chosen = (
        chosen_of_file(cluster, group, selection)
        if "file" in selection
        else chosen_of_index(cluster, group, selection, until_id=until_id)
    )
    topics = sorted(set(_topics(chosen.origins, target, target_topic, group)))
    failures = Failures()
    asked = ask_cluster(cluster, lambda gateway: _ask(gateway, group, topics, failures))
    if asked.is_ordered and target == Target.GROUP:
        raise ActionRefused(
            _(
                "The members of %(group)s consume in order: what is sent to its retry topic comes back to the dead"
                " letters at once. Send to the original topic instead, or stop the members and wait a minute."
            )
            % {"group": group}
        )
    return DryRun(
        selection=selection,
        until_id=until_id,
        target=target,
        chosen=chosen,
        topics=tuple(topics),
        closed=asked.closed,
        unsubscribed=_unsubscribed(cluster, group, chosen.origins),
        member_count=asked.member_count,
        is_ordered=asked.is_ordered,
        silent=tuple(failures.reasons.values()),
        readers=tuple(readers_words(cluster, topic) for topic in topics) if target != Target.GROUP else (),
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    closed: tuple[str, ...]
    member_count: int | None
    is_ordered: bool


async def _ask(gateway: Gateway, group: str, topics: list[str], failures: Failures) -> _Asked:
    addresses = [one.address for one in await gateway.masters()]
    closed = [topic for topic in topics if not await gateway.sending.queues(topic, failures)]
    found = await gateway.groups.on_brokers(addresses, group, failures)
    members = {member for one in found.values() for member in one.members}
    where = {address: one.members[0] for address, one in found.items() if one.members}
    is_ordered = await gateway.groups.is_ordered(where, group)
    return _Asked(tuple(closed), len(members) if found else None, is_ordered)


def _topics(origins: Sequence[str], target: Target, target_topic: str, group: str) -> list[str]:
    found = []
    for origin in origins or ("",):
        try:
            found.append(destination(target, target_topic, group=group, origin_topic=origin))
        except NotToBeSent:
            continue
    return found


def _unsubscribed(cluster: Cluster, group: str, origins: Sequence[str]) -> tuple[str, ...]:
    there = Subscription.objects.filter(group__cluster=cluster, group__name=group, ended_at=None)
    subscribed = set(there.values_list("topic_name", flat=True))
    return tuple(topic for topic in origins if topic not in subscribed) if subscribed else ()
