"""What a run answers: by itself, and as one of many in an answer that has an item for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.request import Request

from mqadmin.action_runs.models import KEY_CHARS_MAX
from mqadmin.action_runs.runner import PermissionRefused
from mqadmin.action_runs.runs import InProgress, Refusal, Result
from mqadmin.actions.arguments import InvalidArguments
from mqadmin.actions.declaration import ActionRefused, ActionUnavailable
from mqadmin.api import problems
from mqadmin.api.problems import FieldError, Kind, Problem
from mqadmin.api.serializers.actions import run_document
from mqadmin.audit.models import Outcome

PREVIEW_ERRORS = (InvalidArguments, ActionRefused, ActionUnavailable)
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


def run_answer(result: Result | InProgress) -> tuple[int, dict[str, Any]]:
    """Returns status and document of a run that has ended. Raises Problem where nothing was done, or it goes on."""
    match result:
        case InProgress():
            words = _("Another request with this key is being carried out.")
            headers = {"Retry-After": str(RETRY_AFTER_S)}
            raise Problem(problems.IN_PROGRESS, words, run=str(result.run_id), headers=headers)
        case Result(refusal=Refusal() as refusal):
            raise Problem(KIND_OF_REFUSAL[refusal], result.reason, errors=errors(result.errors), run=str(result.run_id))
        case Result(outcome=Outcome.FAILED, items=()):
            raise Problem(problems.UNAVAILABLE, result.reason, run=str(result.run_id))
    return 200 if result.outcome == Outcome.DONE else 207, run_document(result)


def item_answer(result: Result | InProgress) -> dict[str, Any]:
    """Returns what `run_answer` says as members of one item among others."""
    try:
        http_status, document = run_answer(result)
    except Problem as problem:
        return {"status": problem.kind.http_status, "run": None, "problem": problem.document()}
    return {"status": http_status, "run": document, "problem": None}


def preview_problem(error: InvalidArguments | ActionRefused | ActionUnavailable) -> Problem:
    """Returns the problem that a preview met: one of PREVIEW_ERRORS."""
    match error:
        case InvalidArguments():
            return invalid_arguments(error.errors)
        case PermissionRefused():
            return Problem(problems.PERMISSION_DENIED, str(error))
        case ActionRefused():
            return Problem(problems.RULE, str(error))
        case ActionUnavailable():
            return Problem(problems.UNAVAILABLE, str(error))


def key_of(request: Request) -> str:
    """Returns the request's idempotency key, "" for none. Raises Problem for one that is too long."""
    key = request.headers.get(IDEMPOTENCY_KEY, "").strip()
    if len(key) > KEY_CHARS_MAX:
        words = _("An idempotency key may have %(chars)d characters.") % {"chars": KEY_CHARS_MAX}
        raise Problem(problems.BAD_REQUEST, words, errors=[FieldError(IDEMPOTENCY_KEY, words)])
    return key


def invalid_arguments(found: Mapping[str, Any]) -> Problem:
    """Returns the problem that names the arguments that are not valid."""
    listed = errors(found)
    return Problem(problems.INVALID_ARGUMENTS, " ".join(one.detail for one in listed), errors=listed)


def errors(found: Mapping[str, Any]) -> list[FieldError]:
    """Returns the sentences, each with the name of its argument."""
    return [FieldError(name, str(sentence)) for name, sentences in found.items() for sentence in sentences]
