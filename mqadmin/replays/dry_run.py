"""What a replay would do: looked up, and asked of the brokers. What is said of it: `dry_run_warnings.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from mqadmin.actions.brokers import ask_cluster
from mqadmin.actions.declaration import ActionRefused
from mqadmin.clusters.models import Cluster, Member, Subscription
from mqadmin.deadletters.selection import awaited
from mqadmin.flows.words import readers_words
from mqadmin.observing.gateway import Failures, Gateway
from mqadmin.replays.choosing import Chosen, chosen_of_file, chosen_of_index, properties_of
from mqadmin.replays.filtered import NOTHING_FILTERED, Expression, Filtered, chosen_by_properties, filtered
from mqadmin.replays.outgoing import NotToBeSent, destination
from mqadmin.replays.states import Target

# A lock that its member did not give back is free after a minute; that it left is observed some seconds later.
LOCKS_LIVE_FOR = timedelta(seconds=90)


@dataclass(frozen=True, slots=True)
class DryRun:
    """`chosen`: what would be sent; `topics`: where to; `closed`: those of them that no broker takes messages for.

    `gone`: origin topics of what goes to the group alone, to which nobody can write any more. Where a name server does
    not answer, neither is known. `unsubscribed`: origin topics that the group does not subscribe to. `filtered`: tags
    and properties that it does not want. `member_count` None: not known.
    `is_ordered`: its members consume in order; None: not known, as not all answered, or nobody is online and those that
    left may hold locks.
    `silent`: who did not answer. `readers`: who reads each topic, in words, unless it goes to the group alone.
    """

    selection: Mapping[str, Any]
    until_id: int
    target: Target
    chosen: Chosen
    topics: tuple[str, ...]
    closed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    unsubscribed: tuple[str, ...] = ()
    filtered: Filtered = NOTHING_FILTERED
    member_count: int | None = None
    is_ordered: bool | None = False
    silent: tuple[str, ...] = field(default=())
    readers: tuple[str, ...] = ()


def dry_run(
    cluster: Cluster, group: str, selection: Mapping[str, Any], *, target: Target, target_topic: str, until_id: int
) -> DryRun:
    """Raises ActionRefused for an ordered group's retry topic and for what takes too long to find, ActionUnavailable
    when no name server answers."""
    with awaited():
        chosen = (
            chosen_of_file(cluster, group, selection)
            if "file" in selection
            else chosen_of_index(cluster, group, selection, until_id=until_id)
        )
        wanted = _wanted(cluster, group)
        by_properties = chosen_by_properties(wanted, chosen.origins) if target != Target.TOPIC else []
        looked_at = (
            properties_of(cluster, group, selection, until_id=until_id, topics=by_properties) if by_properties else ()
        )
    topics = sorted(set(_topics(chosen.origins, target, target_topic, group)))
    failures = Failures()
    # What goes to the group alone is read under the name of its origin.
    origins = chosen.origins if target == Target.GROUP else ()
    asked = ask_cluster(cluster, lambda gateway: _ask(gateway, group, topics, origins, failures))
    # Who left cannot be asked any more.
    is_ordered = None if asked.member_count == 0 and _left_lately(cluster, group) else asked.is_ordered
    if is_ordered and target == Target.GROUP:
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
        gone=asked.gone,
        unsubscribed=tuple(topic for topic in chosen.origins if topic not in wanted) if wanted else (),
        filtered=filtered(chosen.tags, looked_at, wanted) if target != Target.TOPIC else NOTHING_FILTERED,
        member_count=asked.member_count,
        is_ordered=is_ordered,
        silent=tuple(failures.reasons.values()),
        readers=tuple(readers_words(cluster, topic) for topic in topics) if target != Target.GROUP else (),
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    closed: tuple[str, ...]
    gone: tuple[str, ...]
    member_count: int | None
    is_ordered: bool | None


async def _ask(
    gateway: Gateway, group: str, topics: Sequence[str], origins: Sequence[str], failures: Failures
) -> _Asked:
    addresses = [one.address for one in await gateway.masters()]
    closed = await _without_queues(gateway, topics, failures)
    gone = await _without_queues(gateway, origins, failures)
    found = await gateway.groups.on_brokers(addresses, group, failures)
    members = {member for one in found.values() for member in one.members}
    where = {address: one.members[0] for address, one in found.items() if one.members}
    is_ordered = await gateway.groups.is_ordered(where, group)
    return _Asked(closed, gone, len(members) if found else None, is_ordered)


async def _without_queues(gateway: Gateway, topics: Sequence[str], failures: Failures) -> tuple[str, ...]:
    """Returns the topics that take no messages, as all name servers say; none from where one of them is silent.

    `failures` are those of name servers alone until then.
    """
    found = []
    for topic in topics:
        queues = await gateway.sending.queues(topic, failures)
        if not queues and not failures.reasons:
            found.append(topic)
    return tuple(found)


def _topics(origins: Sequence[str], target: Target, target_topic: str, group: str) -> list[str]:
    found = []
    for origin in origins or ("",):
        try:
            found.append(destination(target, target_topic, group=group, origin_topic=origin))
        except NotToBeSent:
            continue
    return found


def _left_lately(cluster: Cluster, group: str) -> bool:
    """Returns whether a member left so shortly ago that locks of it may live still."""
    since = timezone.now() - LOCKS_LIVE_FOR
    return Member.objects.filter(group__cluster=cluster, group__name=group, left_at__gt=since).exists()


def _wanted(cluster: Cluster, group: str) -> dict[str, list[Expression]]:
    """Returns by topic what the group subscribes to, as brokers have it in force; of old and new members both."""
    there = Subscription.objects.filter(group__cluster=cluster, group__name=group, ended_at=None)
    found: dict[str, list[Expression]] = {}
    for topic, text, kind in there.values_list("topic_name", "expression", "expression_type"):
        found.setdefault(topic, []).append(Expression(text, kind))
    return found
