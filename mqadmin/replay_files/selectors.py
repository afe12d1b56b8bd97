"""Files for pages and REST: newest first, what each has of which group, and its lines cut by a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.replay_files.models import FileMessage, ReplayFile

PAGE_SIZE = 50
# Groups of a file that a page names; the file has the others, too.
GROUPS_MAX = 100


@dataclass(frozen=True, slots=True)
class GroupPart:
    """What a file has of a group: messages that can be replayed, those of them that were changed, wrong lines."""

    group_name: str
    message_count: int
    changed_count: int
    wrong_count: int


@dataclass(frozen=True, slots=True)
class FileLines:
    """The lines of a file from its beginning on, without bodies; a position is the number of a line."""

    rows: QuerySet[FileMessage]

    def after(self, position: Sequence[Any] | None, size: int) -> list[FileMessage]:
        """Returns at most `size` lines behind the position, None for the first ones."""
        rows = self.rows if position is None else self.rows.filter(line__gt=position[0])
        return list(rows.defer("body", "properties").order_by("line")[:size])

    def position(self, row: FileMessage) -> list[Any]:
        """Returns the position of a line, as plain JSON."""
        return [row.line]

    def total_count(self) -> None:
        """Not counted: the file has the counts."""

    def page(self, after: str) -> tuple[tuple[FileMessage, ...], str]:
        """Returns the lines behind a cursor, the first ones where it is "" or garbage, and the next cursor."""
        is_place = after.isascii() and after.isdigit() and len(after) <= 9
        found = self.after([int(after)] if is_place else None, PAGE_SIZE + 1)
        rows = tuple(found[:PAGE_SIZE])
        return rows, str(rows[-1].line) if len(found) > PAGE_SIZE else ""


def files(cluster: Cluster) -> NewestRows[ReplayFile]:
    """Returns the files of a cluster that were read to their end."""
    return NewestRows(ReplayFile.objects.filter(cluster=cluster, read_at__isnull=False), "created_at")


def file(cluster: Cluster, number: int) -> ReplayFile:
    """Raises ReplayFile.DoesNotExist."""
    return ReplayFile.objects.get(cluster=cluster, pk=number, read_at__isnull=False)


def parts(found: ReplayFile) -> list[GroupPart]:
    """Returns what a file has of each group, "" for lines that do not say whose they are."""
    rows = FileMessage.objects.filter(file=found).values("group_name").order_by("group_name")
    counted = rows.annotate(
        good=Count("pk", filter=Q(problem="")),
        changed=Count("pk", filter=Q(problem="", is_changed=True)),
        wrong=Count("pk", filter=~Q(problem="")),
    )
    return [GroupPart(row["group_name"], row["good"], row["changed"], row["wrong"]) for row in counted[:GROUPS_MAX]]


def lines(found: ReplayFile, *, is_wrong: bool = False) -> FileLines:
    """Returns the lines of a file, or those that are wrong."""
    rows = FileMessage.objects.filter(file=found)
    return FileLines(rows.exclude(problem="") if is_wrong else rows)


def of_group(file_id: int, group: str) -> QuerySet[FileMessage]:
    """Returns what a replay of a group is about: its lines, and the wrong ones that do not say whose they are."""
    return FileMessage.objects.filter(Q(group_name=group) | Q(group_name=""), file=file_id)
