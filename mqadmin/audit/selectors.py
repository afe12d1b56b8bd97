"""What pages, REST and command line read of the audit: newest first, filtered and cut by the database.

A list goes on from a number (`before`, `after`), not from a page: what is written meanwhile moves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from mqadmin.audit.models import AuditEntry, Outcome

PAGE_SIZE = 50
EXPORT_CHUNK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """What entries must be like. "" and None: anything. `subject` is a part of the name; `until` is left out itself.

    `clusters` are those whose entries the reader may see; None: all, and those about the installation.
    """

    person: str = ""
    action: str = ""
    cluster: str = ""
    subject: str = ""
    outcome: str = ""
    way: str = ""
    since: datetime | None = None
    until: datetime | None = None
    batch: UUID | None = None
    clusters: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Some entries, newest first. `newer` and `older` are the numbers to go on from, None at an end."""

    entries: tuple[AuditEntry, ...]
    newer: int | None
    older: int | None


def page(wanted: AuditFilter, *, before: int | None = None, after: int | None = None) -> AuditPage:
    """Returns the newest entries; those before a number, or those after one that are next to it."""
    found = matching(wanted)
    if after is not None:
        rows = list(found.filter(number__gt=after).order_by("number")[: PAGE_SIZE + 1])
        has_newer, has_older = len(rows) > PAGE_SIZE, True
        rows = rows[:PAGE_SIZE][::-1]
    else:
        older = found if before is None else found.filter(number__lt=before)
        rows = list(older.order_by("-number")[: PAGE_SIZE + 1])
        has_newer, has_older = before is not None, len(rows) > PAGE_SIZE
        rows = rows[:PAGE_SIZE]
    if not rows:
        return AuditPage((), None, None)
    return AuditPage(tuple(rows), rows[0].number if has_newer else None, rows[-1].number if has_older else None)


def entry(number: int, clusters: Collection[str] | None = None) -> AuditEntry:
    """Returns an entry that the reader may see. Raises AuditEntry.DoesNotExist."""
    return matching(AuditFilter(clusters=clusters)).get(number=number)


def export(wanted: AuditFilter) -> Iterator[AuditEntry]:
    """Yields all matching entries, oldest first, a chunk at a time."""
    return matching(wanted).order_by("number").iterator(EXPORT_CHUNK)


def matching(wanted: AuditFilter) -> QuerySet[AuditEntry]:
    """Returns the entries that a filter lets through, in no order."""
    equal = {
        "actor": wanted.person,
        "action": wanted.action,
        "cluster": wanted.cluster,
        "outcome": wanted.outcome,
        "way": wanted.way,
        "batch": wanted.batch,
    }
    condition = Q(**{name: value for name, value in equal.items() if value})
    if wanted.subject:
        condition &= Q(subject__icontains=wanted.subject)
    if wanted.since is not None:
        condition &= Q(at__gte=wanted.since)
    if wanted.until is not None:
        condition &= Q(at__lt=wanted.until)
    if wanted.clusters is not None:
        condition &= Q(cluster__in=wanted.clusters)
    return AuditEntry.objects.filter(condition)


def outcomes() -> list[tuple[str, str]]:
    """Returns the outcomes that an entry can have, with their words."""
    return [(str(value), str(word)) for value, word in Outcome.choices]
