"""`…/failures` and `…/dead-letters`: what messages died of, and the messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.access import AUDIT, role_on
from mqadmin.api.listing import FILTER_CHARS_MAX, ListQuery, ListResource, described, owner_filter
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.dead_letters import (
    BeginningSerializer,
    BodySerializer,
    DeadLetterDetailSerializer,
    DeadLetterSerializer,
    ExportedDeadLetterSerializer,
    FailureDetailSerializer,
    FailureSerializer,
    GroupedFailuresSerializer,
    MendedSerializer,
    ReplayOfSerializer,
)
from mqadmin.api.serializers.retries import FailedAttemptSerializer
from mqadmin.clusters import selectors
from mqadmin.clusters.models import ID_MAX, NAME_CHARS_MAX, Cluster
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.deadletters import selectors as dead_letter_selectors
from mqadmin.deadletters.beginning import beginning_of
from mqadmin.deadletters.bodies import body_of
from mqadmin.deadletters.exporting import ExportedDeadLetter, ExportedRows
from mqadmin.deadletters.grouping import GROUPINGS, GroupedFailures, grouped
from mqadmin.deadletters.matching_rows import MatchingRows
from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.deadletters.search_texts import SEARCHED_CHARS_MIN
from mqadmin.deadletters.selectors import DeadLetterFilter, FailureFilter
from mqadmin.mending.selectors import mended_view
from mqadmin.people.roles import Role, grants
from mqadmin.replays.selectors import of_dead_letter
from mqadmin.retries.selectors import attempts_of, first_failed_at

# What the database holds.
ATTEMPTS_MAX = 2**31 - 1
# Read together of an export: each may have a body of MQADMIN_DEAD_LETTER_BODY_KIB.
EXPORT_ROWS = 50


class FailuresQuery(ListQuery):
    group = serializers.CharField(
        max_length=NAME_CHARS_MAX, default="", allow_blank=True, help_text="Those of this group alone."
    )
    archived = serializers.BooleanField(default=False, help_text="Those that are archived, and no others.")


class FailureListQuery(FailuresQuery):
    owner = owner_filter()
    topic = serializers.CharField(
        max_length=NAME_CHARS_MAX, default="", allow_blank=True, help_text="Of messages first sent to this topic."
    )


def _wanted(query: Mapping[str, Any]) -> FailureFilter:
    return FailureFilter(query["group"], query["owner"], query["topic"], is_archived=query["archived"])


@described("list_failures", "List what messages died of")
class Failures(ListResource):
    """Failures of a cluster's groups, the one that a message died of last first."""

    row = FailureSerializer
    query = FailureListQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Failure]:
        return dead_letter_selectors.failures(selectors.cluster_head(names["cluster"]), _wanted(query))


class GroupedFailuresQuery(FailureListQuery):
    by = serializers.ChoiceField(choices=list(GROUPINGS), help_text="The field that they are put together by.")


@described("group_failures", "Group what messages died of")
class GroupedFailureList(ListResource):
    """Failures put together by one of their fields, by its values; the largest 200."""

    row = GroupedFailuresSerializer
    query = GroupedFailuresQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[GroupedFailures]:
        found = grouped(selectors.cluster_head(names["cluster"]), _wanted(query), query["by"])
        return RowsInMemory(found, key=lambda row: [-row.dead_count, row.value])


class FailureDetail(Resource):
    """A failure with its trend."""

    @extend_schema(operation_id="get_failure", summary="Get a failure", responses=FailureDetailSerializer)
    def get(self, request: Request, cluster: str, failure: int) -> Response:
        head, now = selectors.cluster_head(cluster), timezone.now()
        found = dead_letter_selectors.failure(head, failure)
        shown = FailureSerializer(found).data | {
            "share": _share(found, dead_letter_selectors.totals(head, now).dead_count),
            "trend": dead_letter_selectors.trends([found], now)[found.pk],
        }
        return Response(shown)


def _share(failure: Failure, of_all: int) -> float | None:
    """Returns its part of what is listed; None of one that is archived, which is no part of it."""
    if failure.archived_at is not None:
        return None
    return min(failure.dead_count / of_all, 1) if of_all else 0.0


class FailureBeginning(Resource):
    """What changed around the first failed attempt of what died first; of the audit, what the caller may read."""

    @extend_schema(
        operation_id="get_beginning", summary="Get what changed when it began", responses=BeginningSerializer
    )
    def get(self, request: Request, cluster: str, failure: int) -> Response:
        head = selectors.cluster_head(cluster)
        found = dead_letter_selectors.failure(head, failure)
        role = role_on(request, head)
        reads_audit = role is not None and grants(role, AUDIT)
        began_at = first_failed_at(found)
        beginning = beginning_of(head, found, began_at, timezone.now(), reads_audit=reads_audit)
        return Response(BeginningSerializer(beginning).data)


class DeadLettersQuery(FailuresQuery):
    failure = serializers.IntegerField(
        min_value=1, max_value=ID_MAX, required=False, help_text="Those of this failure alone, by its id."
    )
    q = serializers.CharField(
        max_length=FILTER_CHARS_MAX,
        default="",
        allow_blank=True,
        help_text="Words, each of an id, a key, the group, the topic, the tag, the error, the host, the member or the "
        "value of a property that the sender gave.",
    )
    body = serializers.CharField(
        min_length=SEARCHED_CHARS_MIN,
        max_length=FILTER_CHARS_MAX,
        default="",
        allow_blank=True,
        help_text="A part of the body, of those that the caller may see.",
    )
    since = serializers.DateTimeField(required=False, help_text="Died then or later.")
    until = serializers.DateTimeField(required=False, help_text="Died before.")
    user_property = serializers.CharField(
        max_length=FILTER_CHARS_MAX,
        default="",
        allow_blank=True,
        help_text="A property that the sender gave, as `name=value`; case and signs do not count.",
    )
    attempts = serializers.IntegerField(
        min_value=0, max_value=ATTEMPTS_MAX, required=False, help_text="Tried exactly so often."
    )
    born_since = serializers.DateTimeField(required=False, help_text="First sent then or later.")
    born_until = serializers.DateTimeField(required=False, help_text="First sent before.")


@described("list_dead_letters", "List dead letters")
class DeadLetters(ListResource):
    """Dead letters of a cluster, the latest first.

    With `q`, `body`, `user_property` or `attempts`: the last indexed first. With days of the first sending, and none of
    the death: the one that was sent last first.
    """

    row = DeadLetterSerializer
    query = DeadLettersQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[DeadLetter]:
        head = selectors.cluster_head(names["cluster"])
        return _found(head, query, role_on(self.request, head))


def _found(cluster: Cluster, query: Mapping[str, Any], role: Role | None) -> NewestRows[DeadLetter] | MatchingRows:
    """Returns the dead letters that the query string asks for; of bodies, those that the role may see."""
    wanted = DeadLetterFilter(
        group=query["group"],
        failure_id=query.get("failure"),
        text=query["q"].strip(),
        body=query["body"],
        role=role,
        since=query.get("since"),
        until=query.get("until"),
        user_property=query["user_property"],
        attempts=query.get("attempts"),
        born_since=query.get("born_since"),
        born_until=query.get("born_until"),
        is_archived=query["archived"],
    )
    return dead_letter_selectors.dead_letters(cluster, wanted)


class ExportQuery(DeadLettersQuery):
    limit = serializers.IntegerField(
        min_value=1, max_value=EXPORT_ROWS, default=EXPORT_ROWS, help_text="Rows of one page; of an export: ignored."
    )


@described("export_dead_letters", "Export dead letters")
class DeadLetterExport(ListResource):
    """Dead letters with properties and kept bodies, in the list's order: a whole file as CSV or JSON Lines."""

    row = ExportedDeadLetterSerializer
    query = ExportQuery
    export_rows = EXPORT_ROWS

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[ExportedDeadLetter]:
        head = selectors.cluster_head(names["cluster"])
        role = role_on(self.request, head)
        return ExportedRows(head.name, _found(head, query, role), role)


class DeadLetterDetail(Resource):
    """A dead letter with its properties and its body; the broker is asked for one that was too large to be kept."""

    @extend_schema(operation_id="get_dead_letter", summary="Get a dead letter", responses=DeadLetterDetailSerializer)
    def get(self, request: Request, cluster: str, message: int) -> Response:
        head = selectors.cluster_head(cluster)
        found = dead_letter_selectors.dead_letter(head, message)
        role = role_on(request, head)
        mended = mended_view(found, role)
        shown = DeadLetterSerializer(found).data | {
            "is_on_broker": dead_letter_selectors.is_on_broker(found),
            "properties": found.kept.properties,
            "body_is_kept": found.kept.body is not None,
            "body": BodySerializer(body_of(found, role)).data,
            "attempts": FailedAttemptSerializer(attempts_of(found), many=True).data,
            "mended": MendedSerializer(mended).data if mended is not None else None,
            "replays": ReplayOfSerializer(of_dead_letter(found.pk), many=True).data,
        }
        return Response(shown)
