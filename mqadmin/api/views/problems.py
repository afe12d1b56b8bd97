"""`/problems`: what each kind of problem means, and what to do; their `type` leads here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.listing import ListResource, described
from mqadmin.api.problems import KINDS, MEDIA_TYPE, Kind
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.problems import ProblemKindSerializer, ProblemSerializer


@described("list_problems", "List the kinds of problems")
class Problems(ListResource):
    """Kinds of problems by name."""

    row = ProblemKindSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Kind]:
        return RowsInMemory([KINDS[name] for name in sorted(KINDS)], lambda kind: [kind.name])


class ProblemDetail(Resource):
    """A kind of problems: what it means, and what to do."""

    @extend_schema(
        operation_id="get_problem",
        summary="Get a kind of problems",
        responses={200: ProblemKindSerializer, (404, MEDIA_TYPE): ProblemSerializer},
    )
    def get(self, request: Request, problem: str) -> Response:
        if problem not in KINDS:
            raise Http404
        return Response(ProblemKindSerializer(KINDS[problem]).data)


class Nothing(Resource):
    """Every address that is none: a problem, too, and not a page for people."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise Http404
