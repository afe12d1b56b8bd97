"""Lists: what their query string may say, and their rows cut by a cursor or sent whole.

`limit` and `cursor` are every list's; filters and orders are those of the page, with the same names and values
(`console/listing.py`). A list is answered as one page of JSON, or, as CSV or JSON Lines, from the first row to the last
(`exports.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.http import HttpResponseBase
from django.utils.encoding import escape_uri_path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.cursors import CURSOR_CHARS_MAX, read_cursor, write_cursor
from mqadmin.api.exports import CHUNK_ROWS, EXPORTS, CsvRenderer, JsonLinesRenderer, export
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows, cut
from mqadmin.ownership.models import OWNER_CHARS_MAX

# Rows of one page, at most; as many as are read and written in some tens of milliseconds.
LIMIT_MAX = 500
LIMIT_DEFAULT = 100
# A filter is a word that a person types.
FILTER_CHARS_MAX = 200


class ListQuery(serializers.Serializer[Any]):
    """What every list takes."""

    limit = serializers.IntegerField(
        min_value=1, max_value=LIMIT_MAX, default=LIMIT_DEFAULT, help_text="Rows of one page; of an export: ignored."
    )
    cursor = serializers.CharField(
        max_length=CURSOR_CHARS_MAX, default="", allow_blank=True, help_text="`next_cursor` of the page before."
    )


L = TypeVar("L", bound="ListResource")


def filter_field(what: str) -> serializers.CharField:
    """Returns the parameter `q` of a list whose names can be searched."""
    return serializers.CharField(
        max_length=FILTER_CHARS_MAX, default="", allow_blank=True, help_text=f"Part of the {what}, in any case."
    )


def owner_filter() -> serializers.CharField:
    """Returns the parameter `owner` of a list whose rows somebody may own."""
    return serializers.CharField(
        max_length=OWNER_CHARS_MAX, default="", allow_blank=True, help_text="Those of this owner alone."
    )


def sort_field(sorts: Iterable[str], default: str) -> serializers.ChoiceField:
    """Returns the parameter `sort`: the sorts of the page, with a leading "-" for the other direction."""
    words = [word for sort in sorts for word in (sort, f"-{sort}")]
    return serializers.ChoiceField(
        choices=words, default=default, help_text="A leading - reverses; rows whose figure is not known come last."
    )


class ListResource(Resource):
    """An address that answers with a list. `row` writes a row, `query` reads the query string."""

    renderer_classes = (JSONRenderer, CsvRenderer, JsonLinesRenderer)
    row: type[serializers.Serializer[Any]]
    query: type[ListQuery] = ListQuery
    # Rows of an export that are read together, where they are large.
    export_rows = CHUNK_ROWS

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Any]:
        """Returns the rows that the query string asks for. Raises ObjectDoesNotExist."""
        raise NotImplementedError

    def get(self, request: Request, **names: Any) -> HttpResponseBase:
        query = self._read_query(request)
        accepted = EXPORTS.get(request.accepted_renderer.format)
        if accepted is not None:
            name = "-".join([*map(str, names.values()), request.path.rpartition("/")[2]])
            return export(self.rows(query, **names), self.row, accepted, name, self.export_rows)
        return self.when_changed(request, names, lambda: self._page(request, query, self.rows(query, **names)))

    def _read_query(self, request: Request) -> Mapping[str, Any]:
        query = self.query(data=request.query_params)
        query.is_valid(raise_exception=True)
        return dict(query.validated_data)

    def _page(self, request: Request, query: Mapping[str, Any], rows: Rows[Any]) -> Response:
        place = f"{request.path}?{urlencode(_filters(query))}"
        position = read_cursor(place, query["cursor"]) if query["cursor"] else None
        limit = query["limit"]
        found, following_position = cut(rows, position, limit)
        next_cursor = write_cursor(place, following_position) if following_position is not None else None
        document = {
            "items": self.row(found, many=True).data,
            "next_cursor": next_cursor,
            "total_count": rows.total_count(),
        }
        headers = {}
        if next_cursor:
            following = request.query_params.copy()
            following["cursor"] = next_cursor
            headers["Link"] = f'<{escape_uri_path(request.path)}?{following.urlencode()}>; rel="next"'
        return Response(document, headers=headers)


def _filters(query: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what decides on the rows and their order."""
    return {name: value for name, value in sorted(query.items()) if name not in ("limit", "cursor")}


@cache
def page_of(row: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """Returns the shape of one page of a list, for the description."""
    name = row.__name__.removesuffix("Serializer")
    fields = {
        "items": row(many=True),
        "next_cursor": serializers.CharField(
            allow_null=True, help_text="Send it as `cursor` for the next page; null: this is the last one."
        ),
        "total_count": serializers.IntegerField(
            allow_null=True, help_text="Rows of the whole list; null where it is not counted."
        ),
    }
    return type(f"{name}PageSerializer", (serializers.Serializer,), fields)


def described(operation_id: str, summary: str) -> Callable[[type[L]], type[L]]:
    """Gives the GET of a list its description in OpenAPI; the docstring of the class is its text."""

    def decorate(resource: type[L]) -> type[L]:
        description = extend_schema(
            operation_id=operation_id,
            summary=summary,
            description=inspect.getdoc(resource),
            parameters=[resource.query],
            responses={
                (200, "application/json"): page_of(resource.row),
                (200, "text/csv"): OpenApiTypes.STR,
                (200, "application/jsonl"): OpenApiTypes.STR,
            },
        )
        return extend_schema_view(get=description)(resource)

    return decorate
