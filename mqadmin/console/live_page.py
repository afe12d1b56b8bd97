"""A page and its live region: the same view and the same templates answer both, so they can't differ.

The region is what the socket pushes when something changed: mqadmin/live/regions.py asks for it as live.js does where a
page has missed something. Everything else asks for the page. A page is rendered for its viewer. A region is rendered
once for all who may see the same (fragments.py): its template sees what the view gives it and neither request nor user,
and what the view gives it depends on the person by their rights alone, since it is pushed to others of the same rights.
Browsers may keep neither: they share an address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from django.apps import apps
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.utils.translation import get_language

from mqadmin.clusters.models import Cluster
from mqadmin.console.apps import ConsoleConfig
from mqadmin.console.fragments import FragmentKey
from mqadmin.live.regions import RegionResponse
from mqadmin.live.revisions import revision_of
from mqadmin.live.subscriptions import Subscription, write_subscribe
from mqadmin.people import access


@contextmanager
def or_404() -> Iterator[None]:
    """Turns a selector's ObjectDoesNotExist into Http404, whose page says what is unknown."""
    try:
        yield
    except ObjectDoesNotExist as error:
        raise Http404(str(error)) from error


def live_page(
    request: HttpRequest,
    page: str,
    context: Callable[[], dict[str, Any]],
    *,
    shows: Sequence[Subscription],
    cluster: str = "",
    section: str = "",
    permissions: Sequence[str] = (),
    audience: Sequence[str] = (),
) -> HttpResponse:
    """Returns template `console/<page>.html`, or `console/<page>_region.html` for htmx.

    `context` reads what the page shows; it is called only when something must be rendered, and may raise
    ObjectDoesNotExist. `shows` names the clusters and groups whose changes concern the page; `cluster` and `section`
    its place in the navigation. `permissions` are those on which the region depends: its template finds in `rights`
    the ones that the viewer has. `audience` is whatever else viewers must have in common to be shown the same region.
    """
    here = Cluster.objects.filter(name=cluster).first() if permissions else None
    rights = frozenset(name for name in permissions if access.may(request.user, name, here))
    path = request.get_full_path()

    def whole_context() -> dict[str, Any]:
        with or_404():
            return {"path": path, "rights": rights, **context()}

    if request.headers.get("HX-Request"):
        response: HttpResponse = RegionResponse(_region(page, path, rights.union(audience), shows, whole_context))
    else:
        frame = {
            "subscribe": write_subscribe(shows, path, get_language() or "") if shows else "",
            # Asked before the page is read: what changes meanwhile makes another revision.
            "revision": revision_of(shown.live_group for shown in shows) or "",
            "here": cluster,
            "section": section,
        }
        response = render(request, f"console/{page}.html", frame | whole_context())
    add_never_cache_headers(response)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _region(
    page: str,
    path: str,
    rights: frozenset[str],
    shows: Sequence[Subscription],
    context: Callable[[], dict[str, Any]],
) -> str:
    def rendered() -> str:
        return render_to_string(f"console/{page}_region.html", context())

    revision = revision_of(shown.live_group for shown in shows)
    if revision is None:
        return rendered()
    console = cast(ConsoleConfig, apps.get_app_config("mq_console"))
    return console.fragments.get(FragmentKey(path, get_language() or "", rights, revision), rendered)
