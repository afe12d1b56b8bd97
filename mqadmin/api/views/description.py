"""`/openapi.json`, `/openapi.yaml`, `/docs` and the `/docs/openapi.json` that it draws: the API's description.

It is generated once for each process and language, since that takes a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.utils.translation import get_language, override
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2, OpenApiYamlRenderer
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.openapi_3_0 import as_openapi_3_0
from mqadmin.api.resource import Resource


@cache
def description(language: str) -> dict[str, Any]:
    """Returns the description, its words in a language."""
    with override(language):
        found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return found


@cache
def description_for_page(language: str) -> dict[str, Any]:
    """Returns the description in the version that the page draws soonest."""
    return as_openapi_3_0(description(language))


class _Compact:
    """Writes no white space where it was not asked for (`Accept: …; indent=4`): two thirds of the text would be it."""

    get_indent = JSONRenderer.get_indent


class _CompactJson(_Compact, OpenApiJsonRenderer2):
    pass


class _CompactOpenApiJson(_Compact, OpenApiJsonRenderer):
    pass


class JsonDescription(Resource):
    """The description as JSON."""

    renderer_classes: Sequence[type[BaseRenderer]] = (_CompactJson, _CompactOpenApiJson)
    describe = staticmethod(description)

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        return Response(self.describe(get_language() or "en"))


class PageDescription(JsonDescription):
    """The description that the page draws."""

    describe = staticmethod(description_for_page)


class YamlDescription(JsonDescription):
    """The description as YAML."""

    renderer_classes = (OpenApiYamlRenderer,)
