"""`…/topics/` and `…/topics/<topic>/`: what is stored, and who reads it?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.clusters.models import TopicKind
from mqadmin.console import sentences
from mqadmin.console.known import or_404
from mqadmin.console.listing import read_listing
from mqadmin.console.live_page import live_page
from mqadmin.console.templatetags.marks import topic_kind
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription

ALL_KINDS = "all"


@require_safe
def topics(request: HttpRequest, cluster: str) -> HttpResponse:
    kinds = [kind for kind in TopicKind if kind != TopicKind.NORMAL]
    listing = read_listing(
        request.GET,
        sorts=selectors.TOPIC_SORTS,
        default_sort="name",
        choice_name="kind",
        choices=[*kinds, ALL_KINDS],
    )
    with or_404():
        page = selectors.topics(
            cluster,
            filter=listing.text,
            kind="" if listing.choice == ALL_KINDS else listing.choice or TopicKind.NORMAL,
            sort=listing.sort,
            is_descending=listing.is_descending,
            page=listing.page,
        )
    context = {
        "page": page,
        "listing": listing,
        "choices": [
            ("", gettext("normal topics")),
            *((kind.value, topic_kind(kind)) for kind in kinds),
            (ALL_KINDS, gettext("all kinds")),
        ],
        "choice_label": gettext("Kind"),
        "total_words": sentences.topics_total(page),
        "previous_url": listing.at_page(page.number - 1),
        "next_url": listing.at_page(page.number + 1),
    }
    shows = [Subscription(cluster, kinds=(ChangeKind.TOPICS,))]
    return live_page(request, "topics", context, shows=shows, cluster=cluster, section="topics")


@require_safe
def topic(request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
    with or_404():
        page = selectors.topic_page(cluster, topic)
    shows = [Subscription(cluster, kinds=(ChangeKind.TOPICS, ChangeKind.GROUPS))]
    context = {"page": page, "words": sentences.topic_words(page)}
    return live_page(request, "topic", context, shows=shows, cluster=cluster, section="topics")
