"""The description of the API: what drf-spectacular finds by itself, and what holds for all addresses.

docs/openapi.yaml is the description that was last accepted: `manage.py spectacular --file docs/openapi.yaml` writes it
anew, and a test compares it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

from mqadmin.actions import registry
from mqadmin.actions.declaration import Action
from mqadmin.api.authentication import TokenAuthentication
from mqadmin.api.problems import KINDS, MEDIA_TYPE
from mqadmin.api.views.actions import described_action

Endpoint = tuple[str, str, str, Callable[..., Any]]

_READING = (400, 401, 403, 404, 406, 429, 500, 503)
_WRITING = (*_READING, 409, 413, 415, 422)


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Says so in the description."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A token of a person: mqa_…"}


def addresses_of_the_api(endpoints: list[Endpoint]) -> list[Endpoint]:
    """Leaves out what is for people, and the address of those that are none; gives each action its own."""
    described: list[Endpoint] = []
    for path, regex, method, callback in endpoints:
        if "{action}" in path:
            described += _by_action(path, regex, method, callback)
        elif path.startswith("/api/v1/") and path not in _NOT_DESCRIBED:
            described.append((path, regex, method, callback))
    return described


def _by_action(path: str, regex: str, method: str, callback: Any) -> list[Endpoint]:
    """Returns the address of each action in place of the one that all of them share."""
    return [
        (path.replace("{action}", name), regex, method, described_action(callback.cls, action).as_view())
        for name, action in sorted(registry.ACTIONS.items())
        if isinstance(action, Action) == ("{cluster}" in path) and callback.cls.serves(action)
    ]


_NOT_DESCRIBED = frozenset({"/api/v1/", "/api/v1/docs"})


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Adds to each operation the problems with which it may answer, and 304 where it knows ETags."""
    result["components"]["responses"] = {
        _name(http_status): _problem_response(http_status) for http_status in sorted(set(_WRITING))
    }
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            responses = operation["responses"]
            for http_status in _READING if method == "get" else _WRITING:
                responses[str(http_status)] = {"$ref": f"#/components/responses/{_name(http_status)}"}
            if method == "get" and path.startswith("/api/v1/clusters"):
                responses["304"] = {"description": "What If-None-Match names is still the answer."}
            operation["responses"] = dict(sorted(responses.items()))
    return result


def _name(http_status: int) -> str:
    return f"Problem{http_status}"


def _problem_response(http_status: int) -> Mapping[str, Any]:
    kinds = [kind for kind in KINDS.values() if kind.http_status == http_status]
    return {
        "description": "; ".join(f"{kind.name}: {kind.title}" for kind in kinds),
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
