"""`/people/`: who may do what; `/people/<name>/`: one person with their log-ins."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from mqadmin.console.listing import FILTER_CHARS_MAX
from mqadmin.console.live_page import or_404
from mqadmin.people import selectors
from mqadmin.people.roles import Role
from mqadmin.people.words import ROLE_WORDS

PERMISSION = "auth.view_user"


@require_safe
def people(request: HttpRequest) -> HttpResponse:
    """Lists the accounts by name, with their roles."""
    _check(request)
    text = request.GET.get("q", "").strip().replace("\0", "")[:FILTER_CHARS_MAX]
    rows, after = selectors.people(text, request.GET.get("after", "").replace("\0", "")[:FILTER_CHARS_MAX])
    query = request.GET.copy()
    query["after"] = after
    context = {
        "section": "people",
        "now": timezone.now(),
        "rows": [(row, role_words(row)) for row in rows],
        "text": text,
        "next_url": f"?{query.urlencode()}" if after else "",
    }
    return _page(request, "console/people.html", context)


@require_safe
def person(request: HttpRequest, person: str) -> HttpResponse:
    """Shows an account, its roles and its log-ins."""
    _check(request)
    with or_404():
        page = selectors.person(person)
    own = request.session.session_key
    context = {
        "section": "people",
        "now": timezone.now(),
        "row": page.row,
        "role": role_words(page.row),
        "cluster_roles": [(one.cluster.name, ROLE_WORDS[Role(one.role)]) for one in page.row.cluster_roles],
        "log_ins": [(one, one.session_key == own) for one in page.log_ins],
    }
    return _page(request, "console/person.html", context)


def role_words(row: selectors.PersonRow) -> str:
    """Returns the words of a person's role for all clusters; "" for none."""
    return "" if row.role is None else str(ROLE_WORDS[row.role])


def _check(request: HttpRequest) -> None:
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied


def _page(request: HttpRequest, template: str, context: dict[str, object]) -> HttpResponse:
    response = render(request, template, context)
    add_never_cache_headers(response)
    return response
