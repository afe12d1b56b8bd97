"""`…/actions`: every registered action, previewed and run. A new one needs no line here.

What a run may answer: 200 when everything is as wanted, 207 when it has ended otherwise and `items` say what became of
each, a problem when it was refused or nobody answered, and so nothing was done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.actions import registry, runner, runs
from mqadmin.actions.arguments import InvalidArguments, arguments_form, declared_form
from mqadmin.actions.declaration import Action, ActionRefused, ActionUnavailable, AnyAction
from mqadmin.actions.json_schema import Schema, arguments_schema, check_types
from mqadmin.actions.models import KEY_CHARS_MAX
from mqadmin.actions.runs import InProgress, Refusal, Result
from mqadmin.api import problems
from mqadmin.api.access import caller_of, may_read_run
from mqadmin.api.problems import FieldError, Kind, Problem
from mqadmin.api.resource import Resource
from mqadmin.api.serializers.actions import (
    ActionSerializer,
    PreviewSerializer,
    RunSerializer,
    action_document,
    run_document,
)
from mqadmin.audit.models import Outcome
from mqadmin.clusters import selectors

IDEMPOTENCY_KEY = "Idempotency-Key"
# The caller of a run that is still going on asks again after this.
RETRY_AFTER_S = 1

KIND_OF_REFUSAL: Mapping[Refusal, Kind] = {
    Refusal.PERMISSION: problems.PERMISSION_DENIED,
    Refusal.ARGUMENTS: problems.INVALID_ARGUMENTS,
    Refusal.CONFIRMATION: problems.NOT_CONFIRMED,
    Refusal.STALE: problems.STALE,
    Refusal.BUSY: problems.BUSY,
    Refusal.KEY_REUSED: problems.KEY_REUSED,
    Refusal.READ_ONLY: problems.READ_ONLY,
    Refusal.RULE: problems.RULE,
}


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
    scope_is_left_to_the_runner = True

    def read(self, request: Request, action: str, cluster: str) -> Any:
        """Returns the body. Raises ParseError, Problem, UnknownAction, ObjectDoesNotExist."""
        try:
            form = runner.form(action, cluster)
        except (registry.UnknownAction, runner.WrongTarget) as error:
            raise Http404 from error
        try:
            body: Any = msgspec.convert(request.data, self.body)
        except msgspec.ValidationError as error:
            raise ParseError(_("The body is not what this address takes: %(reason)s") % {"reason": error}) from error
        if errors := check_types(arguments_schema(form), body.arguments):
            raise invalid_arguments(errors)
        return body


class PreviewAction(ActionResource):
    """Shows what a run would do now, and changes nothing."""

    verb = "preview"
    body = PreviewRequest

    def post(self, request: Request, action: str, cluster: str = "") -> Response:
        asked: PreviewRequest = self.read(request, action, cluster)
        try:
            found = runner.preview(caller_of(request), action, cluster, asked.arguments)
        except runner.PermissionRefused as error:
            raise Problem(problems.PERMISSION_DENIED, str(error)) from error
        except InvalidArguments as error:
            raise invalid_arguments(error.errors) from error
        except ActionRefused as error:
            raise Problem(problems.RULE, str(error)) from error
        except ActionUnavailable as error:
            raise Problem(problems.UNAVAILABLE, str(error)) from error
        return Response(PreviewSerializer(found).data)


class RunAction(ActionResource):
    """Carries the action out, once per Idempotency-Key; the audit has an entry of it whatever comes of it."""

    verb = "run"
    body = RunRequest

    def post(self, request: Request, action: str, cluster: str = "") -> Response:
        asked: RunRequest = self.read(request, action, cluster)
        result = runner.run(
            caller_of(request),
            action,
            cluster,
            asked.arguments,
            key=_key(request),
            fingerprint=asked.fingerprint,
            confirmation=asked.confirmation,
        )
        match result:
            case InProgress():
                words = _("Another request with this key is being carried out.")
                headers = {"Retry-After": str(RETRY_AFTER_S)}
                raise Problem(problems.IN_PROGRESS, words, run=str(result.run_id), headers=headers)
            case Result(refusal=Refusal() as refusal):
                raise Problem(
                    KIND_OF_REFUSAL[refusal], result.reason, errors=_errors(result.errors), run=str(result.run_id)
                )
            case Result(outcome=Outcome.FAILED, items=()):
                raise Problem(problems.UNAVAILABLE, result.reason, run=str(result.run_id))
        return Response(run_document(result), 200 if result.outcome == Outcome.DONE else 207)


def _key(request: Request) -> str:
    key = request.headers.get(IDEMPOTENCY_KEY, "").strip()
    if len(key) > KEY_CHARS_MAX:
        words = _("An idempotency key may have %(chars)d characters.") % {"chars": KEY_CHARS_MAX}
        raise Problem(problems.BAD_REQUEST, words, errors=[FieldError(IDEMPOTENCY_KEY, words)])
    return key


def invalid_arguments(errors: Mapping[str, Any]) -> Problem:
    """Returns the problem that names the arguments that are not valid."""
    found = _errors(errors)
    return Problem(problems.INVALID_ARGUMENTS, " ".join(one.detail for one in found), errors=found)


def _errors(errors: Mapping[str, Any]) -> list[FieldError]:
    return [FieldError(name, str(sentence)) for name, sentences in errors.items() for sentence in sentences]


def described_action(resource: type[ActionResource], action: AnyAction) -> type[ActionResource]:
    """Returns the resource with the description of one action, for OpenAPI."""
    schema: Schema = arguments_schema(declared_form(action))
    properties: Schema = {"arguments": schema}
    required = ["arguments"]
    parameters: list[OpenApiParameter] = []
    responses: dict[Any, Any] = {200: PreviewSerializer}
    if resource.body is RunRequest:
        properties["fingerprint"] = {
            "type": ["string", "null"],
            "description": "Of the preview that was decided on: the run refuses when it no longer holds.",
        }
        properties["confirmation"] = {"type": "string", "description": "The subject's name, where it must be typed."}
        required += ["confirmation"] if action.is_confirmed_by_name else []
        limit = {"type": "string", "maxLength": KEY_CHARS_MAX}
        words = "Any text of the caller's own: the same key never carries anything out twice, for seven days."
        parameters = [OpenApiParameter(IDEMPOTENCY_KEY, limit, OpenApiParameter.HEADER, description=words)]
        responses = {
            200: OpenApiResponse(RunSerializer, "Everything is as wanted."),
            207: OpenApiResponse(RunSerializer, "It has ended otherwise: `items` say what became of each."),
        }
    body = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    description = extend_schema(
        operation_id=f"{resource.verb}_{action.name}",
        summary=f"{action.title}: {resource.verb}",
        description=resource.__doc__,
        request={"application/json": body},
        parameters=parameters,
        responses=responses,
    )
    return extend_schema_view(post=description)(type(f"{resource.__name__}_{action.name}", (resource,), {}))


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
