"""`…/actions`: every registered action, previewed and run. A new one needs no line here.

What a run may answer: 200 when everything is as wanted, 207 when it has ended otherwise and `items` say what became of
each, a problem when it was refused or nobody answered, and so nothing was done.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.action_runs import runner, runs
from mqadmin.action_runs.models import KEY_CHARS_MAX
from mqadmin.action_runs.runs import InProgress, Result
from mqadmin.actions import registry
from mqadmin.actions.arguments import arguments_form, declared_form
from mqadmin.actions.declaration import Action, AnyAction
from mqadmin.actions.json_schema import Schema, arguments_schema, check_types
from mqadmin.api.access import caller_of, may_read_run
from mqadmin.api.resource import Resource
from mqadmin.api.run_answers import (
    IDEMPOTENCY_KEY,
    PREVIEW_ERRORS,
    invalid_arguments,
    key_of,
    preview_problem,
    run_answer,
)
from mqadmin.api.serializers.actions import (
    ActionSerializer,
    PreviewSerializer,
    RunSerializer,
    TogetherSerializer,
    action_document,
    run_document,
)
from mqadmin.clusters import selectors

KEY_PARAMETER = OpenApiParameter(
    IDEMPOTENCY_KEY,
    {"type": "string", "maxLength": KEY_CHARS_MAX},
    OpenApiParameter.HEADER,
    description="Any text of the caller's own: the same key never carries anything out twice, for seven days.",
)


class PreviewRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a preview."""

    arguments: dict[str, Any]


class RunRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a run."""

    arguments: dict[str, Any]
    fingerprint: str | None = None
    confirmation: str = ""


class Actions(Resource):
    """Actions, each with the schema of its arguments as they can be here and now."""

    def get(self, request: Request, cluster: str = "") -> Response:
        head = selectors.cluster_head(cluster) if cluster else None
        caller = caller_of(request)
        documents = [
            action_document(
                action,
                arguments_schema(arguments_form(action, head)),
                is_allowed=runner.may(caller, action.name, cluster),
            )
            for _name, action in sorted(registry.ACTIONS.items())
            if isinstance(action, Action) == bool(cluster)
        ]
        return Response(documents)


@extend_schema_view(
    get=extend_schema(
        operation_id="list_cluster_actions",
        summary="List the actions on a cluster",
        description=Actions.__doc__,
        responses=ActionSerializer(many=True),
    )
)
class ClusterActions(Actions):
    """Actions on a cluster."""


@extend_schema_view(
    get=extend_schema(
        operation_id="list_actions",
        summary="List the actions on the installation",
        description=Actions.__doc__,
        responses=ActionSerializer(many=True),
    )
)
class InstallationActions(Actions):
    """Actions on the installation itself."""


class ActionResource(Resource):
    """An address of one action on a cluster, or (`cluster` "") on the installation."""

    verb: ClassVar[str]
    body: ClassVar[type[msgspec.Struct]]
    responses: ClassVar[dict[Any, Any]]
    parameters: ClassVar[tuple[OpenApiParameter, ...]] = ()
    scope_is_left_to_the_runner = True

    @classmethod
    def body_schema(cls, action: AnyAction) -> Schema:
        """Returns the schema of the body, for OpenAPI."""
        raise NotImplementedError

    @classmethod
    def serves(cls, _action: AnyAction) -> bool:
        """Returns whether the address is there for an action."""
        return True

    @classmethod
    def arguments_schema(cls, action: AnyAction) -> Schema:
        """Returns the schema of the arguments that the body has, as it is declared."""
        return arguments_schema(declared_form(action))

    def read(self, request: Request, action: str, cluster: str) -> Any:
        """Returns the body. Raises ParseError, Problem, Http404 where the action is not of this place."""
        found = registry.ACTIONS.get(action)
        if found is None or isinstance(found, Action) != bool(cluster) or not self.serves(found):
            raise Http404
        try:
            body: Any = msgspec.convert(request.data, self.body)
        except msgspec.ValidationError as error:
            raise ParseError(_("The body is not what this address takes: %(reason)s") % {"reason": error}) from error
        # Types are the same on every cluster, so no cluster is asked for its choices.
        if errors := check_types(self.arguments_schema(found), body.arguments):
            raise invalid_arguments(errors)
        return body


class PreviewAction(ActionResource):
    """Shows what a run would do now, and changes nothing."""

    verb = "preview"
    body = PreviewRequest
    responses: ClassVar[dict[Any, Any]] = {200: PreviewSerializer}

    @classmethod
    def body_schema(cls, action: AnyAction) -> Schema:
        return body_of({"arguments": cls.arguments_schema(action)}, ["arguments"])

    def post(self, request: Request, action: str, cluster: str = "") -> Response:
        asked: PreviewRequest = self.read(request, action, cluster)
        try:
            found = runner.preview(caller_of(request), action, cluster, asked.arguments)
        except PREVIEW_ERRORS as error:
            raise preview_problem(error) from error
        return Response(PreviewSerializer(found).data)


class RunAction(ActionResource):
    """Carries the action out, once per Idempotency-Key; the audit has an entry of it whatever comes of it."""

    verb = "run"
    body = RunRequest
    parameters = (KEY_PARAMETER,)
    responses: ClassVar[dict[Any, Any]] = {
        200: OpenApiResponse(RunSerializer, "Everything is as wanted."),
        207: OpenApiResponse(RunSerializer, "It has ended otherwise: `items` say what became of each."),
    }

    def post(self, request: Request, action: str, cluster: str = "") -> Response:
        asked: RunRequest = self.read(request, action, cluster)
        result = runner.run(
            caller_of(request),
            action,
            cluster,
            asked.arguments,
            key=key_of(request),
            fingerprint=asked.fingerprint,
            confirmation=asked.confirmation,
        )
        http_status, document = run_answer(result)
        return Response(document, http_status)

    @classmethod
    def body_schema(cls, action: AnyAction) -> Schema:
        properties: Schema = {
            "arguments": cls.arguments_schema(action),
            "fingerprint": {
                "type": ["string", "null"],
                "description": "Of the preview that was decided on: the run refuses when it no longer holds.",
            },
            "confirmation": {"type": "string", "description": "The subject's name, where it must be typed."},
        }
        return body_of(properties, ["arguments", *(["confirmation"] if action.is_confirmed_by_name else [])])


def body_of(properties: Schema, required: list[str]) -> Schema:
    """Returns the schema of a body that takes nothing else."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def described_action(resource: type[ActionResource], action: AnyAction) -> type[ActionResource]:
    """Returns the resource with the description of one action, for OpenAPI."""
    description = extend_schema(
        operation_id=f"{resource.verb}_{action.name}",
        summary=f"{action.title}: {resource.verb.replace('_', ' ')}",
        description=resource.__doc__,
        request={"application/json": resource.body_schema(action)},
        parameters=list(resource.parameters),
        responses=resource.responses,
    )
    return extend_schema_view(post=description)(type(f"{resource.__name__}_{action.name}", (resource,), {}))


@extend_schema_view(
    get=extend_schema(
        operation_id="list_runs_together",
        summary="List runs that were asked for together",
        responses=TogetherSerializer,
    )
)
class RunsTogether(Resource):
    """The runs of one change of many, or of one file: those that the caller may read, in the order of their ends."""

    def get(self, request: Request, batch: Any) -> Response:
        ended, under_way = runs.find_together(batch, timezone.now(), runs.TOGETHER_RUNS_MAX)
        if not ended and not under_way:
            raise Http404
        together: list[Result | InProgress] = [*ended, *under_way]
        found = [one for one in together if may_read_run(request, one.actor, one.cluster)]
        if not found:
            raise PermissionDenied(_("Somebody else started these runs."))
        document = {
            "batch": batch,
            "is_under_way": bool(under_way),
            "items": [run_document(one) for one in found],
        }
        return Response(TogetherSerializer(document).data)


@extend_schema_view(get=extend_schema(operation_id="get_run", summary="Get a run", responses=RunSerializer))
class RunDetail(Resource):
    """A run of an action: for whoever started it, and for those who may read the audit."""

    def get(self, request: Request, run: Any) -> Response:
        found = runs.find(run)
        if found is None:
            raise Http404
        if not may_read_run(request, found.actor, found.cluster):
            raise PermissionDenied(_("Somebody else started this run."))
        return Response(run_document(found))
