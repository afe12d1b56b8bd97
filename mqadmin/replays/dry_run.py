"""What a replay would do, and what to know before: looked up, and asked of the brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mqadmin.actions.brokers import ask_cluster
from mqadmin.actions.declaration import ActionRefused
from mqadmin.clusters.models import Cluster, Subscription
from mqadmin.deadletters.selection import COUNTED_MAX
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


def warnings_of(found: DryRun) -> list[str]:
    """Returns what to know before, most serious first."""
    warnings, chosen = [], found.chosen
    if chosen.has_more:
        text = _("More than %(n)d have this text; all of them are sent, and the figures here are those of the first.")
        warnings.append(text % {"n": COUNTED_MAX})
    if found.closed:
        words = _("No broker takes messages for %(topics)s: what goes there is refused.")
        warnings.append(words % {"topics": ", ".join(found.closed)})
    warnings += _of_file(chosen)
    if chosen.homeless_count and found.target != Target.TOPIC:
        text = ngettext(
            "Of %(n)d message it is not known to which topic it was first sent: it is refused.",
            "Of %(n)d messages it is not known to which topic they were first sent: they are refused.",
            chosen.homeless_count,
        )
        warnings.append(text % {"n": chosen.homeless_count})
    if chosen.replayed_count:
        text = ngettext(
            "A replay has sent %(n)d of them already.",
            "Replays have sent %(n)d of them already.",
            chosen.replayed_count,
        )
        warnings.append(text % {"n": chosen.replayed_count})
    if found.target == Target.ORIGIN:
        warnings.append(_("Every group of the topic gets them, also those that consumed them before."))
    warnings.extend(found.readers)
    if found.member_count == 0:
        warnings.append(_("No member of the group is online: they wait until one comes."))
    if found.unsubscribed:
        words = _("The group does not subscribe to %(topics)s any more: its members may not know what to do with them.")
        warnings.append(words % {"topics": ", ".join(found.unsubscribed)})
    if chosen.large_count:
        text = ngettext(
            "The body of %(n)d is too large to be kept: it is read from the broker, and refused if it is gone there.",
            "The bodies of %(n)d are too large to be kept: they are read from the broker, and refused if they are gone"
            " there.",
            chosen.large_count,
        )
        warnings.append(text % {"n": chosen.large_count})
    if found.silent:
        warnings.append(_("Not all could be asked: %(reasons)s") % {"reasons": " ".join(found.silent)})
    return warnings


def _of_file(chosen: Chosen) -> list[str]:
    warnings = []
    if chosen.wrong_count:
        text = ngettext(
            "%(n)d line of the file is wrong: the ledger has it as refused, with the reason.",
            "%(n)d lines of the file are wrong: the ledger has them as refused, with the reasons.",
            chosen.wrong_count,
        )
        warnings.append(text % {"n": chosen.wrong_count})
    if chosen.changed_count:
        text = ngettext(
            "%(n)d message of the file is not as this console knows it: it is sent under an id of its own.",
            "%(n)d messages of the file are not as this console knows them: they are sent under ids of their own.",
            chosen.changed_count,
        )
        warnings.append(text % {"n": chosen.changed_count})
    if chosen.others_count:
        text = ngettext(
            "%(n)d line of the file is of another group: it is not sent.",
            "%(n)d lines of the file are of other groups: they are not sent.",
            chosen.others_count,
        )
        warnings.append(text % {"n": chosen.others_count})
    return warnings
