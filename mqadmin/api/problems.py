"""Problems: every answer that is not what was asked for, as RFC 9457 has it (application/problem+json).

Owns the table of kinds and the conversion of exceptions, those of Django and of REST framework included. A problem's
`type` is an address of this API that says what the kind means and what to do (`views/problems.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
ADDRESS = "/api/v1/problems/"
# Of the words of one problem: they may quote what was sent.
DETAIL_CHARS_MAX = 2000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problems. `remedy` says what the caller does now."""

    name: str
    http_status: int
    title: str | Promise
    remedy: str | Promise

    @property
    def address(self) -> str:
        """The problem's `type`."""
        return ADDRESS + self.name


BAD_REQUEST = Kind(
    "bad-request",
    400,
    gettext_lazy("The request cannot be read"),
    gettext_lazy("Correct what `errors` names, or the form of the body."),
)
NOT_AUTHENTICATED = Kind(
    "not-authenticated",
    401,
    gettext_lazy("Nobody is known to be asking"),
    gettext_lazy("Send a token that is valid: Authorization: Bearer mqa_…"),
)
PERMISSION_DENIED = Kind(
    "permission-denied",
    403,
    gettext_lazy("Not allowed"),
    gettext_lazy("Ask an administrator of this console for the role, or use a token of a wider scope."),
)
NOT_FOUND = Kind(
    "not-found",
    404,
    gettext_lazy("There is nothing of this name"),
    gettext_lazy("Look at the list above it: what is gone, and what this caller may not see, is not there."),
)
METHOD_NOT_ALLOWED = Kind(
    "method-not-allowed",
    405,
    gettext_lazy("This address does not take this method"),
    gettext_lazy("Use one of those that the header Allow names."),
)
NOT_ACCEPTABLE = Kind(
    "not-acceptable",
    406,
    gettext_lazy("No such format"),
    gettext_lazy("Ask for one of the media types that the description names for this address."),
)
BUSY = Kind(
    "busy",
    409,
    gettext_lazy("Somebody is changing it at this moment"),
    gettext_lazy("Wait until that run has ended, look at what is there then, and decide anew."),
)
IN_PROGRESS = Kind(
    "in-progress",
    409,
    gettext_lazy("Another request with this key is being carried out"),
    gettext_lazy("Ask for its run, or send the same request again after the seconds in Retry-After."),
)
STALE = Kind(
    "stale",
    409,
    gettext_lazy("What the preview showed has changed since"),
    gettext_lazy("Preview again, and decide anew; nothing was done."),
)
READ_ONLY = Kind(
    "read-only",
    409,
    gettext_lazy("The cluster is read-only here"),
    gettext_lazy("An administrator can lift that; nothing was done."),
)
RULE = Kind(
    "refused-by-rule",
    409,
    gettext_lazy("A rule forbids it"),
    gettext_lazy("Read `detail`: it names the rule and what to do; nothing was done."),
)
TOO_LARGE = Kind(
    "too-large",
    413,
    gettext_lazy("The body is too large"),
    gettext_lazy("Send fewer things in one request."),
)
UNSUPPORTED_MEDIA_TYPE = Kind(
    "unsupported-media-type",
    415,
    gettext_lazy("The body is of another media type"),
    gettext_lazy("Send JSON, with Content-Type: application/json."),
)
INVALID_ARGUMENTS = Kind(
    "invalid-arguments",
    422,
    gettext_lazy("Some arguments are not valid"),
    gettext_lazy("Correct what `errors` names; nothing was done."),
)
NOT_CONFIRMED = Kind(
    "not-confirmed",
    422,
    gettext_lazy("The name was not typed"),
    gettext_lazy("Nothing takes this action back: send the subject's name as `confirmation`."),
)
KEY_REUSED = Kind(
    "key-reused",
    422,
    gettext_lazy("The idempotency key was used for another request"),
    gettext_lazy("Make a new key for each change that you mean; nothing was done."),
)
TOO_MANY_REQUESTS = Kind(
    "too-many-requests",
    429,
    gettext_lazy("Too many requests"),
    gettext_lazy("Wait for the seconds in Retry-After."),
)
INTERNAL = Kind(
    "internal",
    500,
    gettext_lazy("The console made a mistake"),
    gettext_lazy("Its log says which. A change may have been carried out: look at the audit."),
)
UNAVAILABLE = Kind(
    "unavailable",
    503,
    gettext_lazy("What is needed for the answer cannot be reached"),
    gettext_lazy("Read `detail`: it says what did not answer; nothing was done. Try again later."),
)

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        BAD_REQUEST,
        NOT_AUTHENTICATED,
        PERMISSION_DENIED,
        NOT_FOUND,
        METHOD_NOT_ALLOWED,
        NOT_ACCEPTABLE,
        BUSY,
        IN_PROGRESS,
        STALE,
        READ_ONLY,
        RULE,
        TOO_LARGE,
        UNSUPPORTED_MEDIA_TYPE,
        INVALID_ARGUMENTS,
        NOT_CONFIRMED,
        KEY_REUSED,
        TOO_MANY_REQUESTS,
        INTERNAL,
        UNAVAILABLE,
    )
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """A sentence about one argument or parameter; `name` "" where it is about none of them alone."""

    name: str
    detail: str


class Problem(exceptions.APIException):
    """A problem to answer with. `run` is the run that the audit has of it, `headers` go with the answer."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        run: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status_code = kind.http_status
        self.words = detail
        self.errors = tuple(errors)
        self.run = run
        self.headers = dict(headers or {})

    def document(self) -> dict[str, Any]:
        """Returns the members of the problem as JSON has them."""
        members: dict[str, Any] = {
            "type": self.kind.address,
            "title": str(self.kind.title),
            "status": self.kind.http_status,
            "detail": self.words[:DETAIL_CHARS_MAX],
        }
        if self.errors:
            members["errors"] = [{"name": one.name, "detail": one.detail[:DETAIL_CHARS_MAX]} for one in self.errors]
        if self.run:
            members["run"] = self.run
        return members


def handle(error: Exception, context: Mapping[str, Any]) -> Response:
    """Answers an exception of a view: REST framework's EXCEPTION_HANDLER. A mistake of ours is logged."""
    problem = problem_of(error)
    if problem is None:
        logger.exception("%s %s failed", context["request"].method, context["request"].path, exc_info=error)
        problem = Problem(INTERNAL, _("The console made a mistake; its log says which."))
    request = context["request"]
    # Whatever format was asked for: a problem is JSON.
    request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
    return Response(problem.document(), problem.status_code, headers=problem.headers, content_type=MEDIA_TYPE)


def problem_of(error: Exception) -> Problem | None:
    """Returns the problem that an exception means to the caller; None for a mistake of ours."""
    match error:
        case Problem():
            return error
        case exceptions.ValidationError():
            errors = list(_field_errors(error.detail))
            return Problem(BAD_REQUEST, " ".join(one.detail for one in errors), errors=errors)
        case exceptions.Throttled():
            wait_s = ceil(getattr(error, "wait", None) or 1)
            words = _("Too many requests. Wait %(seconds)d s.") % {"seconds": wait_s}
            return Problem(TOO_MANY_REQUESTS, words, headers={"Retry-After": str(wait_s)})
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            challenge = getattr(error, "auth_header", "")
            headers = {"WWW-Authenticate": challenge} if challenge else {}
            return Problem(NOT_AUTHENTICATED, str(error.detail), headers=headers)
        case exceptions.APIException() if error.status_code in _KIND_OF_STATUS:
            return Problem(_KIND_OF_STATUS[error.status_code], str(error.detail))
        case ObjectDoesNotExist():
            model = type(error).__qualname__.partition(".")[0].lower()
            return Problem(NOT_FOUND, _("There is no %(kind)s of this name.") % {"kind": model})
        case Http404():
            return Problem(NOT_FOUND, _("There is nothing at this address."))
        case PermissionDenied():
            return Problem(PERMISSION_DENIED, str(error) or _("Your account lacks the right to do this."))
        case RequestDataTooBig():
            return Problem(TOO_LARGE, _("The body is larger than this console reads."))
        case SuspiciousOperation():
            return Problem(BAD_REQUEST, str(error))
        case OperationalError() | InterfaceError():
            logger.error("the database cannot be reached: %s", error)
            words = _("The console's database cannot be reached.")
            return Problem(UNAVAILABLE, words, headers={"Retry-After": "5"})
        case _:
            return None


# REST framework's own exceptions: malformed bodies, methods, formats.
_KIND_OF_STATUS = {
    kind.http_status: kind
    for kind in (
        BAD_REQUEST,
        PERMISSION_DENIED,
        NOT_FOUND,
        METHOD_NOT_ALLOWED,
        NOT_ACCEPTABLE,
        UNSUPPORTED_MEDIA_TYPE,
    )
}


def _field_errors(detail: Any, name: str = "") -> list[FieldError]:
    """Flattens the errors of a serializer; the name of what is inside something else is `outer.inner`."""
    if isinstance(detail, Mapping):
        return [
            error
            for key, value in detail.items()
            for error in _field_errors(value, name if key == "non_field_errors" else f"{name}.{key}".lstrip("."))
        ]
    if isinstance(detail, list):
        return [error for value in detail for error in _field_errors(value, name)]
    return [FieldError(name, str(detail))]
