"""`/openapi.json`, `/openapi.yaml` and `/docs`: the API's description.

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
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.resource import Resource


@cache
def description(language: str) -> dict[str, Any]:
    """Returns the description, its words in a language."""
    with override(language):
        found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return found


class JsonDescription(Resource):
    """The description as JSON."""

    renderer_classes: Sequence[type[BaseRenderer]] = (OpenApiJsonRenderer2, OpenApiJsonRenderer)

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        return Response(description(get_language() or "en"))


class YamlDescription(JsonDescription):
    """The description as YAML."""

    renderer_classes = (OpenApiYamlRenderer,)
