"""`…/groups/<group>/retries` and `…/retries/standing`: attempts that failed, and what is due."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.listing import ListQuery, ListResource, described
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows
from mqadmin.api.serializers.retries import FailedAttemptSerializer, RetriesStandingSerializer
from mqadmin.clusters import selectors
from mqadmin.retries import selectors as retries
from mqadmin.retries.models import FailedAttempt
from mqadmin.retries.standing import limit_of, standing_of


class RetriesQuery(ListQuery):
    waiting = serializers.BooleanField(default=False, help_text="Those whose next attempt is still to come.")


@described("list_retries", "List failed attempts of a group's messages")
class Retries(ListResource):
    """Attempts after which a broker keeps the message for the next one, the latest first."""

    row = FailedAttemptSerializer
    query = RetriesQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[FailedAttempt]:
        head = selectors.group_head(names["cluster"], names["group"])
        return retries.attempts(head.cluster, head.name, waiting_at=timezone.now() if query["waiting"] else None)

    def live_groups(self, **names: str) -> list[str]:
        """Returns none: what waits comes due without a word."""
        return []


class RetriesStanding(Resource):
    """What of a group waits to be retried, and what is due: brokers and members are asked while the caller waits."""

    @extend_schema(
        operation_id="get_retries_standing",
        summary="Ask where a group's retries stand",
        responses=RetriesStandingSerializer,
    )
    def get(self, request: Request, cluster: str, group: str) -> Response:
        page = selectors.group_page(cluster, group)
        standing = standing_of(page.cluster, group, page.members)
        waiting = retries.waiting(page.cluster, group, timezone.now())
        attempts_max, is_of_members = limit_of(standing, page.group)
        shown = {
            "waiting_count": waiting.count,
            "next_due_at": waiting.rows[0].due_at if waiting.rows else None,
            "due_count": standing.due_count,
            "due": standing.due,
            "attempts_max": attempts_max,
            "is_attempts_max_of_members": is_of_members,
            "skipped_count": retries.reading(page.cluster).skipped_count,
            "failures": standing.failures,
        }
        return Response(RetriesStandingSerializer(shown).data)
