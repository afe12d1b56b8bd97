"""`/audit`: who changed what, the newest first; `/audit/<number>`: one entry; `/audit/check`: the chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.access import AUDIT, scope_of
from mqadmin.api.listing import FILTER_CHARS_MAX, ListQuery, ListResource, described
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows
from mqadmin.api.serializers.audit import AuditEntrySerializer, CheckSerializer
from mqadmin.audit import chain, selectors
from mqadmin.audit.chain import Head
from mqadmin.audit.models import HASH_CHARS, AuditEntry, Outcome
from mqadmin.audit.selectors import AuditFilter
from mqadmin.people import access
from mqadmin.people.caller import Way

# Entries of one check: some seconds of one core.
CHECKED_ENTRIES_MAX = 10_000
NUMBER_DIGITS_MAX = 15
_FILTERS = ("person", "action", "cluster", "subject", "outcome", "way", "batch")


def _word(what: str) -> serializers.CharField:
    return serializers.CharField(max_length=FILTER_CHARS_MAX, default="", allow_blank=True, help_text=what)


class AuditQuery(ListQuery):
    """The filters of the page."""

    person = _word("Who.")
    action = _word("Name of the action.")
    cluster = _word("Name of the cluster.")
    subject = _word("Part of the subject's name, in any case.")
    outcome = serializers.ChoiceField(choices=Outcome.choices, default="", allow_blank=True)
    way = serializers.ChoiceField(choices=[way.value for way in Way], default="", allow_blank=True)
    since = serializers.DateField(required=False, help_text="The first day, in UTC.")
    until = serializers.DateField(required=False, help_text="The last day, in UTC.")
    batch = serializers.UUIDField(required=False, help_text="Entries of one change of many.")
    sort = serializers.ChoiceField(choices=["number", "-number"], default="-number")

    def validate_since(self, day: date) -> date:
        return _within_calendar(day)

    def validate_until(self, day: date) -> date:
        return _within_calendar(day)


def _within_calendar(day: date) -> date:
    if day.year in (1, 9999):
        raise serializers.ValidationError("There is no such day in an audit.")
    return day


@dataclass(frozen=True, slots=True)
class AuditRows:
    """Entries by number."""

    wanted: AuditFilter
    is_descending: bool

    def after(self, position: Sequence[Any] | None, size: int) -> list[AuditEntry]:
        found = selectors.matching(self.wanted)
        if position is not None:
            found = found.filter(**{"number__lt" if self.is_descending else "number__gt": position[0]})
        return list(found.order_by("-number" if self.is_descending else "number")[:size])

    def position(self, row: AuditEntry) -> list[Any]:
        return [row.number]

    def total_count(self) -> None:
        return None


@described("list_audit", "List the audit")
class Audit(ListResource):
    """Every change and every refused change, the newest first. As JSON Lines it is what the page exports."""

    row = AuditEntrySerializer
    query = AuditQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[AuditEntry]:
        wanted = AuditFilter(**{name: query[name] for name in _FILTERS if name in query}, clusters=_readable(self))
        if "since" in query:
            wanted = replace(wanted, since=_begin(query["since"]))
        if "until" in query:
            # The day itself belongs to what is asked for.
            wanted = replace(wanted, until=_begin(query["until"]) + timedelta(days=1))
        return AuditRows(wanted, query["sort"].startswith("-"))


class AuditEntryDetail(Resource):
    """An entry of the audit."""

    @extend_schema(operation_id="get_audit_entry", summary="Get an entry of the audit", responses=AuditEntrySerializer)
    def get(self, request: Request, number: int) -> Response:
        return Response(AuditEntrySerializer(selectors.entry(number, _readable(self))).data)


class CheckQuery(serializers.Serializer[Any]):
    """Where a check begins."""

    after = serializers.RegexField(
        rf"^[0-9]{{1,{NUMBER_DIGITS_MAX}}}:[0-9a-f]{{{HASH_CHARS}}}$",
        required=False,
        help_text="`number:hash` of the `head` of an earlier check: it must still be so, and what follows is checked.",
    )


class AuditCheck(Resource):
    """Goes through the chain of entries, at most 10,000 of them; `after` goes on. For administrators."""

    permission = "mq_audit.delete_auditentry"

    @extend_schema(
        operation_id="check_audit",
        summary="Check the chain of the audit",
        parameters=[CheckQuery],
        responses=CheckSerializer,
    )
    def get(self, request: Request) -> Response:
        query = CheckQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        after = _head(query.validated_data["after"]) if "after" in query.validated_data else None
        report = chain.check(after=after, count_max=CHECKED_ENTRIES_MAX)
        return Response(CheckSerializer(report).data)


def _head(text: str) -> Head:
    number, _, digest = text.partition(":")
    return Head(int(number), digest)


def _readable(resource: Resource) -> list[str] | None:
    """Returns the clusters whose entries the caller may read, None for all. Raises PermissionDenied for none."""
    request = resource.request
    clusters = access.clusters_where(request.user, AUDIT, scope_of(request))
    if clusters == []:
        raise PermissionDenied
    return clusters


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
