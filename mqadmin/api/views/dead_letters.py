"""`…/failures` and `…/dead-letters`: what messages died of, and the messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    FailureSerializer,
    GroupedFailuresSerializer,
    MendedSerializer,
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
from mqadmin.retries.selectors import attempts_of, first_failed_at

# Read together of an export: each may have a body of MQADMIN_DEAD_LETTER_BODY_KIB.
EXPORT_ROWS = 50


class FailuresQuery(ListQuery):
    group = serializers.CharField(
        max_length=NAME_CHARS_MAX, default="", allow_blank=True, help_text="Those of this group alone."
    )
    archived = serializers.BooleanField(default=False, help_text="Those that are archived, and no others.")


class FailureListQuery(FailuresQuery):
    owner = owner_filter()


@described("list_failures", "List what messages died of")
class Failures(ListResource):
    """Failures of a cluster's groups, the one that a message died of last first."""

    row = FailureSerializer
    query = FailureListQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Failure]:
        wanted = FailureFilter(query["group"], query["owner"], query["archived"])
        return dead_letter_selectors.failures(selectors.cluster_head(names["cluster"]), wanted)


class GroupedFailuresQuery(FailureListQuery):
    by = serializers.ChoiceField(choices=list(GROUPINGS), help_text="The field that they are put together by.")


@described("group_failures", "Group what messages died of")
class GroupedFailureList(ListResource):
    """Failures put together by one of their fields, by its values; the largest 200."""

    row = GroupedFailuresSerializer
    query = GroupedFailuresQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[GroupedFailures]:
        wanted = FailureFilter(query["group"], query["owner"], query["archived"])
        found = grouped(selectors.cluster_head(names["cluster"]), wanted, query["by"])
        return RowsInMemory(found, key=lambda row: [-row.dead_count, row.value])


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
        return Response(
            BeginningSerializer(beginning_of(head, found, first_failed_at(found), reads_audit=reads_audit)).data
        )


class DeadLettersQuery(FailuresQuery):
    failure = serializers.IntegerField(
        min_value=1, max_value=ID_MAX, required=False, help_text="Those of this failure alone, by its id."
    )
    q = serializers.CharField(
        max_length=FILTER_CHARS_MAX,
        default="",
        allow_blank=True,
        help_text="Words, each of an id, a key, the group, the topic, the tag, the error, the host or the member.",
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


@described("list_dead_letters", "List dead letters")
class DeadLetters(ListResource):
    """Dead letters of a cluster, the latest first; with `q` or `body`, the last indexed first."""

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
            "body": BodySerializer(body_of(found, role)).data,
            "attempts": FailedAttemptSerializer(attempts_of(found), many=True).data,
            "mended": MendedSerializer(mended).data if mended is not None else None,
        }
        return Response(shown)
