"""Middleware: the pages of a cluster that somebody may not see are not there for them.

It looks at the argument `cluster` of each address, so that no page can forget it. A change passes to the runner, which
refuses and audits it. REST knows its callers by itself, and asks `access.visible_clusters`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase

from mqadmin.people import access


class ClusterAccessMiddleware:
    """Answers 404 to whoever reads of a cluster that is not theirs."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Passes the request on."""
        return self._get_response(request)

    def process_view(self, request: HttpRequest, _view: Any, _args: Any, names: dict[str, Any]) -> None:
        """Raises Http404 for a cluster that the person may not see."""
        name = names.get("cluster")
        if name is None or request.method not in ("GET", "HEAD") or not request.user.is_authenticated:
            return
        # Whoever sees all of them hears from the page itself that there is none of that name.
        if access.sees_all(request.user) or access.visible_clusters(request.user).filter(name=name).exists():
            return
        raise Http404(f"no cluster {name}")
