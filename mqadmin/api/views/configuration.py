"""`…/configuration`: topics and groups of a cluster as a YAML file, exported, planned and applied.

The file and what it may change are those of `manage.py config` (docs/CONFIGURATION.md): each change is an action of its
own. What is sent as a whole is bounded, because each topic and group is asked of the brokers while the caller waits.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.action_runs import runner, runs
from mqadmin.action_runs.many import BEGIN_WITHIN_S
from mqadmin.action_runs.runs import InProgress, Result
from mqadmin.actions.arguments import InvalidArguments
from mqadmin.actions.declaration import ActionRefused, ActionUnavailable
from mqadmin.api import problems
from mqadmin.api.access import caller_of
from mqadmin.api.listing import filter_field, owner_filter
from mqadmin.api.parsers import YamlParser
from mqadmin.api.problems import FieldError, Problem
from mqadmin.api.resource import Resource
from mqadmin.api.run_answers import item_answer, key_of, preview_problem, run_answer
from mqadmin.api.serializers.configuration import AppliedSerializer, PlanSerializer
from mqadmin.api.views.actions import KEY_PARAMETER
from mqadmin.clusters.models import Cluster
from mqadmin.configuration import document, planning
from mqadmin.configuration.document import Entry
from mqadmin.configuration.planning import PlanError, Step
from mqadmin.people.caller import Caller

# Topics and groups of one request: each costs the brokers a question, one after the other.
ENTRIES_MAX = 500
FINGERPRINT_CHARS_MAX = 64
DOCUMENT = {"type": "object", "properties": {kind: {"type": "object"} for kind in ("topics", "groups")}}
FILE = {"application/yaml": DOCUMENT}


class YamlRenderer(BaseRenderer):
    """Names the format; the view writes it."""

    media_type = "application/yaml"
    format = "yaml"


class ExportQuery(serializers.Serializer[Any]):
    """Which topics and groups."""

    q = filter_field("name")
    owner = owner_filter()


class ApplyQuery(serializers.Serializer[Any]):
    """On which plan was decided."""

    fingerprint = serializers.CharField(
        max_length=FINGERPRINT_CHARS_MAX,
        default="",
        allow_blank=True,
        help_text="Of the plan that was decided on: nothing is done when applying would do something else now.",
    )


class ConfigurationExport(Resource):
    """Topics and groups that people made, as their brokers have them; what could not be read is said in comments."""

    renderer_classes = (YamlRenderer, JSONRenderer)

    @extend_schema(
        operation_id="export_configuration",
        summary="Export topics and groups as a file",
        parameters=[ExportQuery],
        responses={(200, "application/yaml"): DOCUMENT},
    )
    def get(self, request: Request, cluster: str) -> HttpResponse:
        query = ExportQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        head = Cluster.objects.get(name=cluster)
        caller = caller_of(request)
        if not all(runner.may(caller, action, cluster) for action in ("create_topic", "create_group")):
            words = _("Your account lacks the right to ask the brokers for the settings of topics and groups.")
            raise Problem(problems.PERMISSION_DENIED, words)
        chosen = planning.names(head, query.validated_data["q"].strip(), query.validated_data["owner"].strip())
        if len(chosen) > ENTRIES_MAX:
            words = _("%(n)d topics and groups are found, and an export has at most %(most)d: narrow it.") % {
                "n": len(chosen),
                "most": ENTRIES_MAX,
            }
            raise Problem(problems.BAD_REQUEST, words, errors=[FieldError("q", words)])
        entries, left_out = planning.export(caller, head, chosen)
        comments = "".join(f"# {_one_line(words)}\n" for words in left_out)
        return HttpResponse(comments + document.write(entries), content_type="application/yaml; charset=utf-8")


class ConfigurationPlan(Resource):
    """What applying a file would change; changes nothing."""

    parser_classes = (YamlParser,)
    scope_is_left_to_the_runner = True

    @extend_schema(
        operation_id="plan_configuration",
        summary="Compare a file with what is there",
        request=FILE,
        responses=PlanSerializer,
    )
    def post(self, request: Request, cluster: str) -> Response:
        head = Cluster.objects.get(name=cluster)
        ends_s = time.monotonic() + BEGIN_WITHIN_S
        try:
            steps = _differing(caller_of(request), head, _entries(request), lambda: time.monotonic() > ends_s)
        except PlanError as error:
            raise _problem(error) from error
        return Response(PlanSerializer({"items": steps, "fingerprint": planning.fingerprint(steps)}).data)


class ConfigurationApply(Resource):
    """Changes what differs from a file, once per Idempotency-Key; each change has its entry in the audit."""

    # Comparing and applying together take BEGIN_WITHIN_S.
    clock = staticmethod(time.monotonic)
    parser_classes = (YamlParser,)
    scope_is_left_to_the_runner = True

    @extend_schema(
        operation_id="apply_configuration",
        summary="Apply a file",
        request=FILE,
        parameters=[ApplyQuery, KEY_PARAMETER],
        responses={
            200: OpenApiResponse(AppliedSerializer, "Everything is as the file says."),
            207: OpenApiResponse(AppliedSerializer, "Something is not: `items` say what became of each step."),
        },
    )
    def post(self, request: Request, cluster: str) -> Response:
        query = ApplyQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        wanted = query.validated_data["fingerprint"]
        head = Cluster.objects.get(name=cluster)
        caller, key = caller_of(request), key_of(request)
        ends_s = self.clock() + BEGIN_WITHIN_S
        try:
            steps = _differing(caller, head, _entries(request), lambda: self.clock() > ends_s)
        except PlanError as error:
            raise _refused(caller, head, error) from error
        batch, file = planning.batch_of(caller, key), hashlib.sha256(_body(request)).hexdigest()
        earlier = _earlier(caller, head, steps, batch, file)
        if wanted and steps and not earlier and wanted != planning.fingerprint(steps):
            # Refused as any run is whose preview no longer holds, so that the audit has it.
            step = steps[0]
            run_answer(runner.run(caller, step.action, head.name, step.arguments, fingerprint=""))
        items = list(_repeated(earlier, steps))
        begun = 0
        for step, result in planning.apply(caller, head, steps, batch, file):
            items.append(_item(step.entry.kind, step.entry.name, result))
            begun += 1
            if self.clock() > ends_s:
                break
        is_wanted = begun == len(steps) and all(item["status"] == 200 for item in items)
        found = {"batch": batch, "items": items, "not_begun": steps[begun:]}
        return Response(AppliedSerializer(found).data, 200 if is_wanted else 207)


def _body(request: Request) -> bytes:
    # Without a body there is a form without fields.
    body: Any = request.data
    return body if isinstance(body, bytes) else b""


def _earlier(caller: Caller, cluster: Cluster, steps: Sequence[Step], batch: uuid.UUID, file: str) -> list[Result]:
    """Returns what was done of this file under the request's key. Raises Problem for a key of another file."""
    ended = [one for one in runs.find_batch(batch, runs.TOGETHER_RUNS_MAX) if one.cluster == cluster.name]
    keys = runs.keys_of([one.run_id for one in ended])
    ended = [one for one in ended if one.run_id in keys]
    if all(keys[one.run_id] == planning.key_of_step(batch, cluster, one.action, one.subject, file) for one in ended):
        return ended
    for step in steps[:1]:
        for one in ended:
            # Refused as any run whose key was used for another one, so that the audit has it.
            run_answer(runner.run(caller, step.action, cluster.name, step.arguments, key=keys[one.run_id]))
    raise Problem(problems.KEY_REUSED, _("The key of this file was used for another one: use a new one."))


def _entries(request: Request) -> list[Entry]:
    """Returns what the body says. Raises Problem."""
    try:
        entries = document.read(_body(request))
    except document.DocumentError as error:
        raise Problem(problems.INVALID_ARGUMENTS, str(error)) from error
    if len(entries) > ENTRIES_MAX:
        words = _("The file has %(n)d topics and groups, and one request may have %(most)d: split it.")
        raise Problem(problems.TOO_LARGE, words % {"n": len(entries), "most": ENTRIES_MAX})
    return entries


def _differing(caller: Caller, cluster: Cluster, entries: list[Entry], is_over: Callable[[], bool]) -> list[Step]:
    """Returns what differs from the file. Raises PlanError, Problem for brokers that take too long."""
    steps: list[Step] = []
    for entry in entries:
        if is_over():
            words = _("The brokers answer too slowly: after %(seconds)d s the file was compared up to line %(line)d.")
            raise Problem(problems.UNAVAILABLE, words % {"seconds": BEGIN_WITHIN_S, "line": entry.line})
        steps += planning.plan(caller, cluster, [entry])
    return steps


def _problem(error: PlanError) -> Problem:
    """Returns the problem that a plan met, with the line and the key in its words."""
    cause = error.__cause__
    assert isinstance(cause, InvalidArguments | ActionRefused | ActionUnavailable)
    found = preview_problem(cause)
    return Problem(found.kind, str(error), errors=found.errors)


def _refused(caller: Caller, cluster: Cluster, error: PlanError) -> Problem:
    """Returns the problem of a file that cannot be applied; what refused it is in the audit as any refused run."""
    result = runner.run(caller, error.action, cluster.name, error.arguments, fingerprint="")
    try:
        run_answer(result)
    except Problem as problem:
        return Problem(problem.kind, str(error), errors=problem.errors, run=problem.run)
    return _problem(error)


def _repeated(earlier: Sequence[Result], steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    """Yields what an earlier request with the key did, but for what is asked of it once more."""
    again = {(step.action, step.entry.name) for step in steps}
    for result in earlier:
        if (result.action, result.subject) not in again:
            kind = result.action.rpartition("_")[2]
            yield _item(kind, result.subject, replace(result, is_repeat=True))


def _item(kind: str, name: str, result: Result | InProgress) -> dict[str, Any]:
    return {"kind": kind, "name": name, "action": result.action, **item_answer(result)}


def _one_line(words: str) -> str:
    return "".join(char if char.isprintable() else " " for char in words)
