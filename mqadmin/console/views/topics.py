"""`…/topics/` and `…/topics/<topic>/` with its tabs: queues, the groups that read them, the producers."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.clusters.models import TopicKind
from mqadmin.console import sentences
from mqadmin.console.listing import FILTER_CHARS_MAX, Listing, read_listing
from mqadmin.console.live_page import live_page, or_404
from mqadmin.console.tabs import Tab
from mqadmin.console.templatetags.marks import topic_kind
from mqadmin.deadletters.selectors import dead_of_topic
from mqadmin.lag.selectors import prefetch_histories
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription
from mqadmin.ownership.models import Described
from mqadmin.ownership.rows import attach_owners, with_owners
from mqadmin.ownership.selectors import owners
from mqadmin.producers.asking import producers_of

ALL_KINDS = "all"
# The list shows normal topics unless one of these is chosen.
FURTHER_KINDS = tuple(kind for kind in TopicKind if kind != TopicKind.NORMAL)


@require_safe
def topics(request: HttpRequest, cluster: str) -> HttpResponse:
    listing = topics_listing(request.GET)
    shows = [Subscription(cluster, kinds=(ChangeKind.TOPICS,))]
    return live_page(
        request, "topics", lambda: _topics(cluster, listing), shows=shows, cluster=cluster, section="topics"
    )


def topics_listing(query: QueryDict) -> Listing:
    """Reads the query string of the list of topics."""
    return read_listing(
        query,
        sorts=selectors.TOPIC_SORTS,
        default_sort="name",
        choice_name="kind",
        choices=[*FURTHER_KINDS, ALL_KINDS],
    )


def chosen_kind(listing: Listing) -> str:
    """Returns the kind of topics that a list shows, "" for all."""
    return "" if listing.choice == ALL_KINDS else listing.choice or TopicKind.NORMAL


def _topics(cluster: str, listing: Listing) -> dict[str, Any]:
    page = selectors.topics(
        cluster,
        filter=listing.text,
        kind=chosen_kind(listing),
        sort=listing.sort,
        is_descending=listing.is_descending,
        page=listing.page,
        further=lambda head, rows: with_owners(rows, head, Described.TOPIC, listing.owner),
    )
    return {
        "page": page,
        "listing": listing,
        "owners": owners(page.cluster, Described.TOPIC),
        "choices": [
            ("", gettext("normal topics")),
            *((kind.value, topic_kind(kind)) for kind in FURTHER_KINDS),
            (ALL_KINDS, gettext("all kinds")),
        ],
        "choice_label": gettext("Kind"),
        "total_text": sentences.topics_total(page),
        "previous_url": listing.at_page(page.number - 1),
        "next_url": listing.at_page(page.number + 1),
    }


@require_safe
def topic(request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
    shows = [Subscription(cluster, kinds=(ChangeKind.TOPICS, ChangeKind.GROUPS, ChangeKind.DEAD_LETTERS))]
    return live_page(request, "topic", lambda: _topic(cluster, topic), shows=shows, cluster=cluster, section="topics")


def _topic(cluster: str, topic: str) -> dict[str, Any]:
    page = selectors.topic_page(cluster, topic)
    prefetch_histories([reader.group for reader in page.readers])
    attach_owners([page.topic], page.cluster, Described.TOPIC)
    is_normal = page.topic.kind == TopicKind.NORMAL
    return {
        "page": page,
        "summary": sentences.topic_sentence(page),
        "dead_count": dead_of_topic(page.cluster, topic) if is_normal else None,
        "tab": "topic",
        "tabs": topic_tabs(cluster, topic),
    }


@require_safe
def producers(request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
    """Asks the topic's brokers, while the viewer waits, who is connected to send."""
    group = request.GET.get("group", "").strip().replace("\0", "")[:FILTER_CHARS_MAX]
    with or_404():
        head = selectors.cluster_head(cluster)
        found = selectors.topic_head(cluster, topic)
    now = timezone.now()
    answer = producers_of(head, found, group, now)
    context = {
        "here": cluster,
        "section": "topics",
        "now": now,
        "topic": found,
        "group": group,
        "answer": answer,
        "summary": sentences.producers_sentence(answer, topic, group),
        "tab": "producers",
        "tabs": topic_tabs(cluster, topic),
    }
    response = render(request, "console/producers.html", context)
    add_never_cache_headers(response)
    return response


def topic_tabs(cluster: str, topic: str) -> list[Tab]:
    """Returns the pages about a topic."""
    return [
        Tab("topic", reverse("topic", args=[cluster, topic]), gettext("Readers and queues")),
        Tab("producers", reverse("topic_producers", args=[cluster, topic]), gettext("Producers")),
        Tab("topic_flow", reverse("topic_flow", args=[cluster, topic]), gettext("Flow map")),
    ]
