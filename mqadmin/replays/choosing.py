"""What a selection holds, counted for the dry run: dead letters of the index, or the messages of a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext as _

from mqadmin.actions.declaration import ActionRefused
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.content import kept_properties
from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.deadletters.selection import counted, estimated, selected
from mqadmin.replay_files.models import FileMessage, ReplayFile
from mqadmin.replay_files.selectors import of_group
from mqadmin.replays.models import ReplayEntry
from mqadmin.replays.states import EntryState
from remoting.wire.properties import Property

SAMPLE_SIZE = 5
# Origin topics of one group that are looked at.
TOPICS_MAX = 20
# Tags of them all.
TAGS_MAX = 200
# Messages whose properties are looked at: where a group chooses by them, and for the tags of a file.
LOOKED_AT_MAX = 1000
SENT = (EntryState.SENDING, EntryState.SENT, EntryState.UNKNOWN)


class OriginTag(NamedTuple):
    """The tag of some of the messages, "" for none, and the topic that they were first sent to."""

    topic: str
    tag: str


class OriginProperties(NamedTuple):
    """What a message would be sent with, and the topic that it was first sent to."""

    topic: str
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Chosen:
    """`count`: how many can be sent; with `has_more` there are more, uncounted, all together about `estimate`, and the
    other figures are those of the first. `origins`: where they came from,
    `tags`: with which tags, TAGS_MAX at most; of a file, those of its first LOOKED_AT_MAX messages.

    `sample`: message ids. `large_count`: bodies that are on the broker alone; `homeless_count`: the topic of these is
    not known. Of a file: `wrong_count` lines that cannot be sent, `changed_count` messages that are not known to be as
    the index has them, `others_count` lines of other groups.
    """

    count: int
    origins: tuple[str, ...]
    sample: tuple[str, ...]
    replayed_count: int
    large_count: int
    homeless_count: int
    tags: tuple[OriginTag, ...] = ()
    has_more: bool = False
    estimate: int | None = None
    wrong_count: int = 0
    changed_count: int = 0
    others_count: int = 0

    @property
    def ledger_count(self) -> int | None:
        """Returns how many entries the ledger gets; None where they were not counted to the end."""
        return None if self.has_more else self.count + self.wrong_count


def chosen_of_index(cluster: Cluster, group: str, selection: Mapping[str, Any], *, until_id: int) -> Chosen:
    """Returns what of the index is selected."""
    found = selected(cluster, group, selection, until_id=until_id)
    rows, has_more = counted(found)
    # Together: each of them would read all that is selected.
    counts = rows.order_by().aggregate(
        all=Count("pk"),
        large=Count("pk", filter=Q(body_bytes__gt=settings.MQADMIN_DEAD_LETTER_BODY_KIB * 1024)),
        homeless=Count("pk", filter=Q(origin_topic="")),
    )
    named = _named(cluster, group, rows, selection)
    topics = named.exclude(origin_topic="").values_list("origin_topic", flat=True).distinct().order_by("origin_topic")
    return Chosen(
        count=counts["all"],
        has_more=has_more,
        estimate=estimated(cluster, group, selection) if has_more else None,
        origins=tuple(sorted(topics[:TOPICS_MAX])),
        tags=_tags(named),
        sample=tuple(row.message_id for row in found.after(None, SAMPLE_SIZE)),
        replayed_count=_replayed(Q(dead_letter__in=rows.values("pk")), "dead_letter"),
        large_count=counts["large"],
        homeless_count=counts["homeless"],
    )


def chosen_of_file(cluster: Cluster, group: str, selection: Mapping[str, Any]) -> Chosen:
    """Returns what of a file is the group's. Raises ActionRefused where the file is gone, or has nothing of it."""
    file = ReplayFile.objects.filter(cluster=cluster, pk=selection["file"], read_at__isnull=False).first()
    if file is None:
        raise ActionRefused(_("This cluster has no file of this number; it may have been removed for its age."))
    rows = of_group(file.pk, group)
    good = rows.filter(problem="")
    if not good.exists():
        words = _("The file has nothing of group %(group)s that could be sent.")
        raise ActionRefused(words % {"group": group})
    own = {"has_body": False, "dead_letter__body_bytes__gt": settings.MQADMIN_DEAD_LETTER_BODY_KIB * 1024}
    counts = rows.aggregate(
        good=Count("pk", filter=Q(problem="")),
        wrong=Count("pk", filter=~Q(problem="")),
        changed=Count("pk", filter=Q(problem="", is_changed=True)),
        homeless=Count("pk", filter=Q(problem="", origin_topic="")),
    )
    names = good.exclude(origin_topic="").order_by().values_list("origin_topic", flat=True).distinct()
    is_known = Q(dead_letter__in=good.filter(dead_letter__isnull=False).values("dead_letter"))
    return Chosen(
        count=counts["good"],
        origins=tuple(sorted(names[:TOPICS_MAX])),
        tags=_tags_of(_of_lines(good.exclude(origin_topic=""))),
        sample=tuple(_name(row) for row in good.order_by("line").defer("body", "properties")[:SAMPLE_SIZE]),
        replayed_count=_replayed(is_known, "dead_letter")
        + _replayed(Q(dead_letter=None, file_message__in=good.values("pk")), "file_message"),
        large_count=good.filter(**own).count(),
        homeless_count=counts["homeless"],
        wrong_count=counts["wrong"],
        changed_count=counts["changed"],
        others_count=file.line_count - counts["good"] - counts["wrong"],
    )


def properties_of(
    cluster: Cluster, group: str, selection: Mapping[str, Any], *, until_id: int, topics: Sequence[str]
) -> list[OriginProperties]:
    """Returns the properties of the first LOOKED_AT_MAX messages of these topics."""
    if "file" in selection:
        return _of_lines(of_group(selection["file"], group).filter(problem="", origin_topic__in=topics))
    found = selected(cluster, group, selection, until_id=until_id)
    rows = replace(found, rows=found.rows.filter(origin_topic__in=topics)).after(None, LOOKED_AT_MAX)
    kept = kept_properties([row.pk for row in rows])
    return [OriginProperties(row.origin_topic, kept[row.pk]) for row in rows if row.pk in kept]


def _of_lines(rows: QuerySet[FileMessage]) -> list[OriginProperties]:
    fields = ("origin_topic", "has_body", "dead_letter", "properties")
    lines = list(rows.order_by("line").values_list(*fields)[:LOOKED_AT_MAX])
    kept = kept_properties([dead_id for _topic, has_body, dead_id, _own in lines if dead_id and not has_body])
    return [
        OriginProperties(topic, own if has_body else kept.get(dead_id, {})) for topic, has_body, dead_id, own in lines
    ]


def _name(row: FileMessage) -> str:
    return row.message_id or _("line %(n)d") % {"n": row.line}


def _replayed(which: Q, what: str) -> int:
    sent = ReplayEntry.objects.filter(which, state__in=SENT)
    return int(sent.aggregate(n=Count(what, distinct=True))["n"])


def _named(
    cluster: Cluster, group: str, rows: QuerySet[DeadLetter], selection: Mapping[str, Any]
) -> QuerySet[DeadLetter] | QuerySet[Failure]:
    """Returns what names origin topics and tags: the few failures, where these are what is selected."""
    if not set(selection) <= {"failure", "role"}:
        return rows.order_by()
    its_failures = Failure.objects.filter(cluster=cluster, group_name=group)
    return its_failures.filter(pk=selection["failure"]) if "failure" in selection else its_failures


def _tags(named: QuerySet[DeadLetter] | QuerySet[Failure]) -> tuple[OriginTag, ...]:
    """Returns the tags of the origin topics, the first TAGS_MAX by name."""
    fields = ("origin_topic", "tag")
    found = named.exclude(origin_topic="").values_list(*fields).distinct().order_by(*fields)
    return tuple(OriginTag(*one) for one in sorted(found[:TAGS_MAX]))


def _tags_of(messages: Iterable[OriginProperties]) -> tuple[OriginTag, ...]:
    found = {OriginTag(one.topic, one.properties.get(Property.TAGS, "")) for one in messages}
    return tuple(sorted(found)[:TAGS_MAX])
