"""Addresses for templates of lists: one owner's rows, exports, where REST has the same. `{% load listing %}`."""

from __future__ import annotations

from django import template
from django.http import HttpRequest, QueryDict
from django.template.context import Context
from django.urls import reverse
from django.utils.encoding import escape_uri_path

from mqadmin.console.listing import Listing

register = template.Library()

# Parameters of a page's address that say where in the list it is.
PLACE_IN_LIST = ("page", "after", "before")


@register.simple_tag
def of_owner(listing: Listing, owner: str) -> str:
    """Returns the address of the list with the rows of one owner alone."""
    return listing.of_owner(owner)


@register.inclusion_tag("components/export_links.html", takes_context=True)
def export_links(context: Context) -> dict[str, str]:
    """Offers the whole list as files, with the filters and the order of the page: REST has it under the same path."""
    request = context["request"]
    query = _without_place(request)
    filters = f"&{query.urlencode()}" if query else ""
    return {"address": api_address(context), "filters": filters}


@register.simple_tag(takes_context=True)
def api_address(context: Context) -> str:
    """Returns where REST has what the page shows: under the same path."""
    tree = reverse("api:openapi_json").rpartition("/")[0]
    return f"{tree}{escape_uri_path(context['request'].path.rstrip('/'))}"


@register.simple_tag(takes_context=True)
def filters_query(context: Context) -> str:
    """Returns the query string of the list's filters and order, with its "?"; "" where there are none."""
    query = _without_place(context["request"])
    return f"?{query.urlencode()}" if query else ""


def _without_place(request: HttpRequest) -> QueryDict:
    query = request.GET.copy()
    for name in [*PLACE_IN_LIST, *(name for name, value in query.items() if not value)]:
        query.pop(name, None)
    return query
