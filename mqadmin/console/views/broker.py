"""`…/brokers/<broker>/` and its tabs: address, version, role, what it tells of its run; its settings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from mqadmin.brokers.settings import CHANGED, NOT_KNOWN, matching, settings_of
from mqadmin.clusters import selectors
from mqadmin.clusters.figures import Figure
from mqadmin.clusters.models import Broker
from mqadmin.clusters.versions import version_name
from mqadmin.console import sentences
from mqadmin.console.listing import read_listing
from mqadmin.console.live_page import live_page, or_404
from mqadmin.console.tabs import Tab
from mqadmin.live.subscriptions import Subscription
from mqadmin.metrics import selectors as metrics
from mqadmin.metrics.models import BrokerRuntime
from mqadmin.observing.gateway import GatewayError

# Of milliseconds, until the year 2286.
MOMENT_DIGITS_MAX = 13
# Of RocketMQ's figures, those that say most, in the order in which they are shown; the others follow by name.
FIRST_FIGURES = (
    "runtime",
    "commitLogDiskRatio",
    "consumeQueueDiskRatio",
    "commitLogDirCapacity",
    "earliestMessageTimeStamp",
    "remainHowManyDataToFlush",
    "dispatchBehindBytes",
)


@dataclass(frozen=True, slots=True)
class RuntimeFigure:
    """A figure by RocketMQ's name, as the broker told it; `moment` where it is a time."""

    name: str
    value: str
    moment: datetime | None


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """A master or slave of that name. `figures`: none where it told nothing yet."""

    broker: Broker
    version: str
    put_per_s: Figure
    get_per_s: Figure
    seen_at: datetime | None
    figures: tuple[RuntimeFigure, ...]


@require_safe
def broker(request: HttpRequest, cluster: str, broker: str) -> HttpResponse:
    return live_page(
        request,
        "broker",
        lambda: _context(cluster, broker),
        shows=[Subscription(cluster)],
        cluster=cluster,
        section="cluster",
    )


def _context(cluster: str, broker: str) -> dict[str, Any]:
    page = selectors.broker_page(cluster, broker)
    runtimes = metrics.runtimes(page.brokers)
    return {
        "page": page,
        "now": page.now,
        "name": broker,
        "tab": "broker",
        "tabs": _tabs(cluster, broker),
        "lines": [_line(one, runtimes.get(one.pk)) for one in page.brokers],
    }


@require_safe
def broker_settings(request: HttpRequest, cluster: str, broker: str) -> HttpResponse:
    """Asks the broker, while the viewer waits, for its settings, and shows each beside its default."""
    listing = read_listing(
        request.GET, sorts=("name",), default_sort="name", choice_name="show", choices=(CHANGED, NOT_KNOWN)
    )
    with or_404():
        page = selectors.broker_page(cluster, broker)
    found, error = None, ""
    try:
        found = settings_of(page.cluster, page.brokers[0])
    except GatewayError as caught:
        error = str(caught)
    context = {
        "here": cluster,
        "section": "cluster",
        "name": broker,
        "listing": listing,
        "choices": [
            ("", gettext("all settings")),
            (CHANGED, gettext("differ from the default")),
            (NOT_KNOWN, gettext("default not known")),
        ],
        "choice_label": gettext("Which"),
        "found": found,
        "lines": matching(found.settings, listing.text, listing.choice) if found is not None else [],
        "error": error,
        "summary": sentences.settings_sentence(found) if found is not None else "",
        "tab": "settings",
        "tabs": _tabs(cluster, broker),
    }
    response = render(request, "console/broker_settings.html", context)
    add_never_cache_headers(response)
    return response


def _tabs(cluster: str, broker: str) -> list[Tab]:
    return [
        Tab("broker", reverse("broker", args=[cluster, broker]), gettext("Run")),
        Tab("settings", reverse("broker_settings", args=[cluster, broker]), gettext("Settings")),
    ]


def _line(broker: Broker, runtime: BrokerRuntime | None) -> BrokerLine:
    figures = runtime.figures if runtime is not None else {}
    names = [*(name for name in FIRST_FIGURES if name in figures), *sorted(set(figures) - set(FIRST_FIGURES))]
    seen_at = runtime.seen_at if runtime is not None else None
    return BrokerLine(
        broker=broker,
        version=version_name(broker.version) if broker.version is not None else figures.get("brokerVersionDesc", ""),
        put_per_s=Figure(runtime.put_per_s if runtime is not None else None, seen_at),
        get_per_s=Figure(runtime.get_per_s if runtime is not None else None, seen_at),
        seen_at=seen_at,
        figures=tuple(RuntimeFigure(name, str(figures[name]), _moment(name, str(figures[name]))) for name in names),
    )


def _moment(name: str, value: str) -> datetime | None:
    """Returns the time that a figure is in milliseconds since 1970; None for all other figures, and for none yet."""
    if not name.lower().endswith("timestamp") or not (value.isascii() and value.isdigit()):
        return None
    ms = int(value[:MOMENT_DIGITS_MAX])
    return datetime.fromtimestamp(ms / 1000, UTC) if ms > 0 and len(value) <= MOMENT_DIGITS_MAX else None
