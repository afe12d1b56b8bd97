"""A page and its live region: the same view answers both, so they can't differ.

live.js has the region fetched by htmx when a socket says that something changed; everything else asks for the page.
Neither may come from a cache: they share an address.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers, patch_vary_headers

from mqadmin.live.subscriptions import Subscription, write_subscribe


def live_page(
    request: HttpRequest,
    page: str,
    context: dict[str, Any],
    *,
    shows: Sequence[Subscription],
    cluster: str = "",
    section: str = "",
) -> HttpResponse:
    """Returns template `console/<page>.html`, or `console/<page>_region.html` for htmx.

    `shows` names the clusters and groups whose changes concern the page; `cluster` and `section` its place in the
    navigation.
    """
    template = f"console/{page}_region.html" if request.headers.get("HX-Request") else f"console/{page}.html"
    frame = {
        "subscribe": write_subscribe(shows) if shows else "",
        "here": cluster,
        "section": section,
    }
    response = render(request, template, {**frame, **context})
    add_never_cache_headers(response)
    patch_vary_headers(response, ["HX-Request"])
    return response
