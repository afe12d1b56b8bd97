"""`…/actions/<action>/preview-many` and `run-many`: one action on many topics, groups or brokers of a cluster.

The subjects are a list of names, or what a filter of their list finds now. Each is a run of its own, with its own audit
entry and its own answer; one that is refused does not stop the others (`actions/many.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.action_runs import runner
from mqadmin.action_runs.many import BEGIN_WITHIN_S, WrongSubjects, checked, preview_many, run_many
from mqadmin.action_runs.runs import BATCH_RUNS_MAX
from mqadmin.actions import registry
from mqadmin.actions.declaration import Action, AnyAction
from mqadmin.actions.json_schema import Schema
from mqadmin.api.access import caller_of
from mqadmin.api.listing import FILTER_CHARS_MAX, ListQuery
from mqadmin.api.run_answers import PREVIEW_ERRORS, invalid_arguments, item_answer, key_of, preview_problem, run_answer
from mqadmin.api.serializers.actions import PreviewManySerializer, RunManySerializer
from mqadmin.api.views.actions import KEY_PARAMETER, ActionResource, body_of
from mqadmin.api.views.groups import GroupsQuery, group_rows
from mqadmin.api.views.topics import TopicsQuery, topic_rows
from mqadmin.clusters.selectors.sorted_rows import SortedRows


@dataclass(frozen=True, slots=True)
class Filter:
    """The filters of a list that find subjects by their names."""

    query: type[ListQuery]
    names: tuple[str, ...]
    rows: Callable[[str, Mapping[str, Any]], SortedRows[Any]]


FILTERS: Mapping[str, Filter] = {
    "topic": Filter(TopicsQuery, ("q", "kind", "owner"), topic_rows),
    "group": Filter(GroupsQuery, ("q", "status", "owner"), group_rows),
}
# What a cluster has many of. Other actions are about one thing each.
SUBJECTS = ("topic", "group", "broker")


class PreviewManyRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a preview: `arguments` without the subject, and either names or a filter."""

    arguments: dict[str, Any]
    subjects: list[str] | None = None
    filter: dict[str, str] | None = None


class RunManyRequest(PreviewManyRequest):
    """The body of a run. `confirmation` is the number of subjects in digits, where a name would be typed for one."""

    fingerprints: dict[str, str] | None = None
    confirmation: str = ""


class ManyResource(ActionResource):
    """An address of one action on many subjects of a cluster."""

    @classmethod
    def serves(cls, action: AnyAction) -> bool:
        return isinstance(action, Action) and action.subject in SUBJECTS

    @classmethod
    def arguments_schema(cls, action: AnyAction) -> Schema:
        schema = super().arguments_schema(action)
        required = [name for name in schema.pop("required", []) if name != action.subject]
        schema["properties"] = {name: one for name, one in schema["properties"].items() if name != action.subject}
        return schema | ({"required": required} if required else {})

    @classmethod
    def body_schema(cls, action: AnyAction) -> Schema:
        names = {"type": "string", "minLength": 1}
        properties: Schema = {
            "arguments": cls.arguments_schema(action),
            "subjects": {
                "type": "array",
                "items": names,
                "minItems": 1,
                "maxItems": BATCH_RUNS_MAX,
                "uniqueItems": True,
                "description": "Names of what is meant; either these or `filter`.",
            },
        }
        if action.subject in FILTERS:
            properties["filter"] = _filter_schema(FILTERS[action.subject])
        return body_of(properties, ["arguments"])

    def subjects(self, asked: PreviewManyRequest, action: AnyAction, cluster: str) -> list[str]:
        """Returns the names that the body means. Raises Problem for none, too many, or one twice."""
        if (asked.subjects is None) == (asked.filter is None):
            raise invalid_arguments({"subjects": [_("Send either `subjects` or `filter`.")]})
        if action.subject in asked.arguments:
            words = _("Each of the subjects takes its place: leave it out.")
            raise invalid_arguments({action.subject: [words]})
        names = asked.subjects if asked.subjects is not None else _found(asked.filter or {}, action, cluster)
        try:
            return checked(names)
        except WrongSubjects as error:
            raise invalid_arguments({"subjects" if asked.filter is None else "filter": [str(error)]}) from error


class PreviewMany(ManyResource):
    """Shows what a run would do now to each of many subjects, and changes nothing."""

    verb = "preview_many"
    body = PreviewManyRequest
    responses: ClassVar[dict[Any, Any]] = {200: PreviewManySerializer}

    def post(self, request: Request, action: str, cluster: str) -> Response:
        asked: PreviewManyRequest = self.read(request, action, cluster)
        caller = caller_of(request)
        _refuse_without_permission(request, action, cluster, None)
        subjects = self.subjects(asked, registry.find(action), cluster)
        ends_s = time.monotonic() + BEGIN_WITHIN_S
        previews = preview_many(caller, action, cluster, asked.arguments, subjects)
        items = list(_until(ends_s, previews))
        return Response(PreviewManySerializer({"items": items, "not_begun": subjects[len(items) :]}).data)


class RunMany(ManyResource):
    """Carries the action out on each of many subjects, once per Idempotency-Key; each has its entry in the audit."""

    verb = "run_many"
    body = RunManyRequest
    parameters: ClassVar[tuple[OpenApiParameter, ...]] = (KEY_PARAMETER,)
    responses: ClassVar[dict[Any, Any]] = {
        200: OpenApiResponse(RunManySerializer, "Everything is as wanted."),
        207: OpenApiResponse(RunManySerializer, "Something is not: `items` say what became of each subject."),
    }

    @classmethod
    def body_schema(cls, action: AnyAction) -> Schema:
        schema = super().body_schema(action)
        schema["properties"] |= {
            "fingerprints": {
                "type": ["object", "null"],
                "additionalProperties": {"type": "string"},
                "description": "Of the previews that were decided on, by subject: what has none, or an older one, is "
                "refused by itself.",
            },
            "confirmation": {
                "type": "string",
                "description": "How many subjects there are, in digits, where the name of one must be typed.",
            },
        }
        return schema

    def post(self, request: Request, action: str, cluster: str) -> Response:
        asked: RunManyRequest = self.read(request, action, cluster)
        key = key_of(request)
        _refuse_without_permission(request, action, cluster, asked)
        done = run_many(
            caller_of(request),
            action,
            cluster,
            asked.arguments,
            self.subjects(asked, registry.find(action), cluster),
            key=key,
            fingerprints=asked.fingerprints,
            confirmation=asked.confirmation,
        )
        items = [{"subject": subject, **item_answer(result)} for subject, result in done.results.items()]
        is_wanted = not done.not_begun and all(item["status"] == 200 for item in items)
        document = {"batch": done.batch, "items": items, "not_begun": done.not_begun}
        return Response(RunManySerializer(document).data, 200 if is_wanted else 207)


def _refuse_without_permission(request: Request, action: str, cluster: str, run: RunManyRequest | None) -> None:
    """Raises Problem where the caller may not do it at all, before a filter tells what is there.

    `run` is what was asked for, which the audit keeps; None where a preview was.
    """
    caller = caller_of(request)
    if runner.may(caller, action, cluster):
        return
    if run is not None:
        meant = {"filter": run.filter} if run.subjects is None else {"subjects": run.subjects}
        run_answer(runner.run(caller, action, cluster, {**run.arguments, **meant}))
    try:
        runner.preview(caller, action, cluster, {})
    except PREVIEW_ERRORS as error:
        raise preview_problem(error) from error


def _until(ends_s: float, found: Iterator[Any]) -> Iterator[Any]:
    for one in found:
        yield one
        if time.monotonic() > ends_s:
            return


def _found(wanted: Mapping[str, str], action: AnyAction, cluster: str) -> list[str]:
    """Returns the names that a filter finds, one more than may be changed at once at most. Raises Problem."""
    offered = FILTERS.get(action.subject)
    if offered is None:
        raise invalid_arguments({"filter": [_("There is no filter here: send `subjects`.")]})
    if unknown := sorted(set(wanted) - set(offered.names)):
        words = _("There is no filter %(names)s; there are: %(offered)s.") % {
            "names": ", ".join(unknown)[:FILTER_CHARS_MAX],
            "offered": ", ".join(offered.names),
        }
        raise invalid_arguments({"filter": [words]})
    query = offered.query(data=dict(wanted))
    if not query.is_valid():
        raise invalid_arguments({f"filter.{name}": sentences for name, sentences in query.errors.items()})
    rows = offered.rows(cluster, dict(query.validated_data))
    if (count := rows.total_count()) > BATCH_RUNS_MAX:
        words = _("%(n)d are found, and %(most)d can be changed at once: narrow the filter.")
        raise invalid_arguments({"filter": [words % {"n": count, "most": BATCH_RUNS_MAX}]})
    return [row.name for row in rows.after(None, BATCH_RUNS_MAX)]


def _filter_schema(offered: Filter) -> Schema:
    fields = offered.query().fields
    properties: Schema = {}
    for name in offered.names:
        field = fields[name]
        one: Schema = {"type": "string", "description": str(field.help_text or "")}
        if isinstance(field, serializers.ChoiceField):
            one["enum"] = [*field.choices, *([""] if field.allow_blank else [])]
        else:
            one["maxLength"] = getattr(field, "max_length", None) or FILTER_CHARS_MAX
        properties[name] = one
    return body_of(properties, []) | {"description": "What the list of them finds with these filters now."}
