"""`…/groups/`: which group is not all right?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.clusters.models import Verdict
from mqadmin.console import sentences
from mqadmin.console.known import or_404
from mqadmin.console.listing import read_listing
from mqadmin.console.live_page import Live, cluster_socket, live_page
from mqadmin.console.status_marks import mark_of
from mqadmin.live.events import ChangeKind


@require_safe
def groups(request: HttpRequest, cluster: str) -> HttpResponse:
    listing = read_listing(
        request.GET,
        sorts=selectors.GROUP_SORTS,
        default_sort="verdict",
        choice_name="status",
        choices=Verdict.values,
    )
    with or_404():
        page = selectors.groups(
            cluster,
            filter=listing.text,
            verdict=listing.choice,
            sort=listing.sort,
            is_descending=listing.is_descending,
            page=listing.page,
        )
    context = {
        "page": page,
        "listing": listing,
        "choices": [("", gettext("any status")), *((verdict.value, mark_of(verdict).word) for verdict in Verdict)],
        "choice_label": gettext("Status"),
        "total_words": sentences.groups_total(page),
        "previous_url": listing.at_page(page.number - 1),
        "next_url": listing.at_page(page.number + 1),
    }
    live = Live((cluster_socket(cluster),), (ChangeKind.GROUPS,))
    return live_page(request, "groups", context, live=live, cluster=cluster, section="groups")
