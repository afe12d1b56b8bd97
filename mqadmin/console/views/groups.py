"""`…/groups/`: the list of consumer groups, those that need attention first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.clusters.models import Verdict
from mqadmin.console import sentences
from mqadmin.console.listing import Listing, read_listing
from mqadmin.console.live_page import live_page
from mqadmin.lag.selectors import prefetch_histories
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription
from mqadmin.ownership.models import Described
from mqadmin.ownership.rows import with_owners
from mqadmin.ownership.selectors import owners


@dataclass(frozen=True, slots=True)
class VerdictLink:
    """A link that shows the groups of one verdict; `verdict` "" shows all."""

    verdict: str
    url: str
    count: int
    is_chosen: bool


@require_safe
def groups(request: HttpRequest, cluster: str) -> HttpResponse:
    listing = groups_listing(request.GET)
    shows = [Subscription(cluster, kinds=(ChangeKind.GROUPS,))]
    return live_page(
        request, "groups", lambda: _context(cluster, listing), shows=shows, cluster=cluster, section="groups"
    )


def groups_listing(query: QueryDict) -> Listing:
    """Reads the query string of the list of groups."""
    return read_listing(
        query, sorts=selectors.GROUP_SORTS, default_sort="verdict", choice_name="status", choices=Verdict.values
    )


def _context(cluster: str, listing: Listing) -> dict[str, Any]:
    page = selectors.groups(
        cluster,
        filter=listing.text,
        verdict=listing.choice,
        sort=listing.sort,
        is_descending=listing.is_descending,
        page=listing.page,
        further=lambda head, rows: with_owners(rows, head, Described.GROUP, listing.owner),
    )
    prefetch_histories(page.rows)
    return {
        "page": page,
        "listing": listing,
        "owners": owners(page.cluster, Described.GROUP),
        "verdict_links": _verdict_links(listing, selectors.verdict_counts(cluster)),
        "total_text": sentences.groups_total(page),
        "previous_url": listing.at_page(page.number - 1),
        "next_url": listing.at_page(page.number + 1),
    }


def _verdict_links(listing: Listing, counts: dict[str, int]) -> list[VerdictLink]:
    """Returns "all", then each verdict that some group has, the worst first."""
    some = [(verdict.value, counts[verdict]) for verdict in Verdict if counts.get(verdict)]
    return [
        VerdictLink(verdict, listing.chosen(verdict), count, listing.choice == verdict)
        for verdict, count in [("", sum(counts.values())), *some]
    ]
