"""A page and its live region: the same view answers both, so they can't differ.

live.js has the region fetched by htmx when a socket says that something changed; everything else asks for the page.
Neither may come from a cache: they share an address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers, patch_vary_headers

from mqadmin.live.events import ChangeKind


@dataclass(frozen=True, slots=True)
class Live:
    """Which sockets a page listens to, and which changes concern it (none named: all)."""

    paths: tuple[str, ...]
    kinds: Sequence[ChangeKind] = ()


def cluster_socket(cluster_name: str) -> str:
    return f"/ws/clusters/{quote(cluster_name, safe='')}/"


def group_socket(cluster_name: str, group_name: str) -> str:
    return f"{cluster_socket(cluster_name)}groups/{quote(group_name, safe='')}/"


def live_page(
    request: HttpRequest, page: str, context: dict[str, Any], *, live: Live, cluster: str = "", section: str = ""
) -> HttpResponse:
    """Template `console/<page>.html`, or `console/<page>_region.html` for htmx.

    `cluster` and `section` say where the page stands in the navigation.
    """
    template = f"console/{page}_region.html" if request.headers.get("HX-Request") else f"console/{page}.html"
    frame = {
        "live_paths": " ".join(live.paths),
        "live_kinds": " ".join(live.kinds),
        "here": cluster,
        "section": section,
    }
    response = render(request, template, {**frame, **context})
    add_never_cache_headers(response)
    patch_vary_headers(response, ["HX-Request"])
    return response
