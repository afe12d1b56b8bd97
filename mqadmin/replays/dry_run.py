"""What a replay would do, and what to know before: looked up, and asked of the brokers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mqadmin.actions.brokers import ask_cluster
from mqadmin.actions.declaration import ActionRefused
from mqadmin.clusters.models import Cluster, Subscription
from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.deadletters.selection import COUNTED_MAX, counted, selected
from mqadmin.observing.gateway import Failures, Gateway
from mqadmin.replays.models import ReplayEntry
from mqadmin.replays.outgoing import NotToBeSent, destination
from mqadmin.replays.states import EntryState, Target

SAMPLE_SIZE = 5
# Origin topics of one group that are looked at.
TOPICS_MAX = 20


@dataclass(frozen=True, slots=True)
class DryRun:
    """`count`: how many; with `has_more` there are more, uncounted. `origins`: where they came from; `topics`: where
    they would go; `closed`: those of them that no broker takes messages for. `sample`: message ids. `unsubscribed`:
    origin topics that the group does not subscribe to. `large_count`: bodies that are on the broker alone;
    `homeless_count`: the topic of these is not known. `member_count` None: not known. `is_ordered`: its members consume
    in order. `silent`: who did not answer.
    """

    selection: Mapping[str, Any]
    until_id: int
    target: Target
    count: int
    has_more: bool
    origins: tuple[str, ...]
    topics: tuple[str, ...]
    sample: tuple[str, ...]
    replayed_count: int
    large_count: int
    homeless_count: int
    closed: tuple[str, ...] = ()
    unsubscribed: tuple[str, ...] = ()
    member_count: int | None = None
    is_ordered: bool = False
    silent: tuple[str, ...] = field(default=())


def dry_run(
    cluster: Cluster, group: str, selection: Mapping[str, Any], *, target: Target, target_topic: str, until_id: int
) -> DryRun:
    """Raises ActionRefused for an ordered group's retry topic, ActionUnavailable when no name server answers."""
    found = selected(cluster, group, selection, until_id=until_id)
    rows, has_more = counted(found)
    origins = _origins(cluster, group, rows, selection)
    topics = sorted(set(_topics(origins, target, target_topic, group)))
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
    sent = (EntryState.SENDING, EntryState.SENT, EntryState.UNKNOWN)
    return DryRun(
        selection=selection,
        until_id=until_id,
        target=target,
        count=rows.count(),
        has_more=has_more,
        origins=tuple(origins),
        topics=tuple(topics),
        sample=tuple(row.message_id for row in found.after(None, SAMPLE_SIZE)),
        replayed_count=ReplayEntry.objects.filter(dead_letter__in=rows.values("pk"), state__in=sent).aggregate(
            n=Count("dead_letter", distinct=True)
        )["n"],
        large_count=rows.filter(body_bytes__gt=settings.MQADMIN_DEAD_LETTER_BODY_KIB * 1024).count(),
        homeless_count=rows.filter(origin_topic="").count() if target != Target.TOPIC else 0,
        closed=asked.closed,
        unsubscribed=_unsubscribed(cluster, group, origins),
        member_count=asked.member_count,
        is_ordered=asked.is_ordered,
        silent=tuple(failures.reasons.values()),
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


def _origins(cluster: Cluster, group: str, rows: QuerySet[DeadLetter], selection: Mapping[str, Any]) -> list[str]:
    """Returns the origin topics: those of the failures, where these are what is selected."""
    if set(selection) <= {"failure"}:
        of_group = Failure.objects.filter(cluster=cluster, group_name=group)
        chosen = of_group.filter(pk=selection["failure"]) if "failure" in selection else of_group
        names = set(chosen.values_list("origin_topic", flat=True))
    else:
        names = set(rows.order_by().values_list("origin_topic", flat=True).distinct()[:TOPICS_MAX])
    return sorted(name for name in names if name)[:TOPICS_MAX]


def _topics(origins: list[str], target: Target, target_topic: str, group: str) -> list[str]:
    found = []
    for origin in origins or [""]:
        try:
            found.append(destination(target, target_topic, group=group, origin_topic=origin))
        except NotToBeSent:
            continue
    return found


def _unsubscribed(cluster: Cluster, group: str, origins: list[str]) -> tuple[str, ...]:
    there = Subscription.objects.filter(group__cluster=cluster, group__name=group, ended_at=None)
    subscribed = set(there.values_list("topic_name", flat=True))
    return tuple(topic for topic in origins if topic not in subscribed) if subscribed else ()


def warnings_of(found: DryRun) -> list[str]:
    """Returns what to know before, most serious first."""
    warnings = []
    if found.has_more:
        text = _("More than %(n)d have this text; all of them are sent, and the figures here are those of the first.")
        warnings.append(text % {"n": COUNTED_MAX})
    if found.closed:
        words = _("No broker takes messages for %(topics)s: what goes there is refused.")
        warnings.append(words % {"topics": ", ".join(found.closed)})
    if found.homeless_count:
        text = ngettext(
            "Of %(n)d message it is not known to which topic it was first sent: it is refused.",
            "Of %(n)d messages it is not known to which topic they were first sent: they are refused.",
            found.homeless_count,
        )
        warnings.append(text % {"n": found.homeless_count})
    if found.replayed_count:
        text = ngettext(
            "A replay has sent %(n)d of them already.",
            "Replays have sent %(n)d of them already.",
            found.replayed_count,
        )
        warnings.append(text % {"n": found.replayed_count})
    if found.target == Target.ORIGIN:
        warnings.append(_("Every group of the topic gets them, also those that consumed them before."))
    if found.member_count == 0:
        warnings.append(_("No member of the group is online: they wait until one comes."))
    if found.unsubscribed:
        words = _("The group does not subscribe to %(topics)s any more: its members may not know what to do with them.")
        warnings.append(words % {"topics": ", ".join(found.unsubscribed)})
    if found.large_count:
        text = ngettext(
            "The body of %(n)d is too large to be kept: it is read from the broker, and refused if it is gone there.",
            "The bodies of %(n)d are too large to be kept: they are read from the broker, and refused if they are gone"
            " there.",
            found.large_count,
        )
        warnings.append(text % {"n": found.large_count})
    if found.silent:
        warnings.append(_("Not all could be asked: %(reasons)s") % {"reasons": " ".join(found.silent)})
    return warnings
