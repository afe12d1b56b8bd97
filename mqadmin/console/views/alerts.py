"""`/alerts/`: what fires now, what fired, the rules, channels and silences, and what was told."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from mqadmin.alerts import acknowledge_alert, add_silence, selectors
from mqadmin.alerts.delivering import place_of
from mqadmin.alerts.evaluating import silence_of
from mqadmin.alerts.fields import WEEKDAYS, clock_of
from mqadmin.alerts.models import Alert, AlertSilence
from mqadmin.alerts.sentences import rule_words, subject_words, what_words
from mqadmin.alerts.stepping import State
from mqadmin.clusters.models import CLUSTER_NAME_CHARS_MAX
from mqadmin.clusters.selectors import cluster_names
from mqadmin.console.live_page import live_page
from mqadmin.console.tabs import Tab
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription
from mqadmin.people import access

CHANNELS = "mq_alerts.view_alertchannel"


@dataclass(frozen=True, slots=True)
class AlertLine:
    """An alert as a row. `status` names its mark; `url` leads to the thing at the time when it fired."""

    alert: Alert
    name: str
    words: str
    url: str
    may_change: bool

    @property
    def status(self) -> str:
        if self.alert.state != State.FIRING:
            return self.alert.state
        if self.alert.is_silenced:
            return "silenced"
        return "acknowledged" if self.alert.acknowledged_at is not None else "firing"


def alert_lines(alerts: Sequence[Alert], changeable: Sequence[str] | None = ()) -> list[AlertLine]:
    """Returns the rows; `changeable`: the clusters on which the viewer may acknowledge, None for all."""
    return [
        AlertLine(
            one,
            subject_words(one.rule.about, one.cluster.name, one.name),
            what_words(one.rule.about, one.reading),
            place_of(one),
            one.state == State.FIRING and (changeable is None or one.cluster.name in changeable),
        )
        for one in alerts
    ]


@require_safe
def alerts(request: HttpRequest) -> HttpResponse:
    """Lists what fires and what is pending; `?cluster=` of one alone."""
    seen = access.visible_clusters(request.user)
    cluster = request.GET.get("cluster", "")[:CLUSTER_NAME_CHARS_MAX]
    changeable = access.clusters_where(request.user, acknowledge_alert.DECLARATION.permission)
    names = cluster_names(seen)

    def context() -> dict[str, Any]:
        found = selectors.present(seen, cluster)
        return {
            "present": found,
            "lines": alert_lines(found.alerts, changeable),
            "cluster": cluster,
            "clusters": names,
            "now": timezone.now(),
            "tab": "alerts",
            "tabs": _tabs(),
        }

    return live_page(
        request,
        "alerts",
        context,
        shows=[Subscription(name, kinds=(ChangeKind.ALERTS,)) for name in names],
        section="alerts",
        audience=(*names, "may change", *(["everything"] if changeable is None else changeable)),
    )


@require_safe
def alert_history(request: HttpRequest) -> HttpResponse:
    """Lists what fired, the latest first."""
    seen = access.visible_clusters(request.user)
    cluster = request.GET.get("cluster", "")[:CLUSTER_NAME_CHARS_MAX]
    page = selectors.fired(seen, cluster).page(request.GET.get("before", ""))
    context = {
        "lines": alert_lines(page.rows),
        "cluster": cluster,
        "clusters": cluster_names(seen),
        "older_url": f"?{_query(cluster=cluster, before=page.older)}" if page.older else "",
    }
    return _page(request, "history", context)


@require_safe
def alert_rules(request: HttpRequest) -> HttpResponse:
    if not access.may_anywhere(request.user, access.VIEW):
        raise PermissionDenied
    rows = [
        (rule, rule_words(rule.about, rule.verdicts, rule.threshold, rule.window_minutes)) for rule in selectors.rules()
    ]
    return _page(request, "rules", {"rows": rows, "offers": _offers({rule.name for rule, _words in rows})})


@require_safe
def alert_channels(request: HttpRequest) -> HttpResponse:
    _require_channels(request)
    return _page(request, "channels", {"rows": selectors.channels()})


@require_safe
def alert_silences(request: HttpRequest) -> HttpResponse:
    seen = access.visible_clusters(request.user)
    addable = access.clusters_where(request.user, add_silence.DECLARATION.permission)
    names = cluster_names(seen)
    now = timezone.now()
    rows = [
        (one, silence_words(one), silence_of(one, one.cluster.name).is_quiet(now))
        for one in selectors.silences(seen, now)
    ]
    context = {"rows": rows, "addable": [name for name in names if addable is None or name in addable]}
    return _page(request, "silences", context)


@require_safe
def alert_deliveries(request: HttpRequest) -> HttpResponse:
    """Lists what was told, by which channel, and what came of it."""
    _require_channels(request)
    seen = access.visible_clusters(request.user)
    page = selectors.deliveries(seen, with_tests=True).page(request.GET.get("before", ""))
    names = selectors.names_of(page.rows)
    context = {
        "rows": [(one, names.get(one.pk, [])) for one in page.rows],
        "older_url": f"?{_query(before=page.older)}" if page.older else "",
    }
    return _page(request, "deliveries", context)


def silence_words(row: AlertSilence) -> str:
    """Returns when a silence holds, apart from its end."""
    if not row.weekdays:
        return gettext("once")
    words = [str(word) for _key, word in WEEKDAYS]
    days = ", ".join(words[day] for day in row.weekdays)
    values = {"days": days, "from": clock_of(row.from_minute), "to": clock_of(row.to_minute), "zone": row.zone}
    return gettext("%(days)s, %(from)s to %(to)s (%(zone)s)") % values


def _require_channels(request: HttpRequest) -> None:
    if not access.may_anywhere(request.user, CHANNELS):
        raise PermissionDenied


def _offers(present: Set[str]) -> list[tuple[str, str]]:
    """Returns rules that most installations want and this has not: what each is about, and where its form is."""
    wanted: tuple[tuple[str, dict[str, str]], ...] = (
        (gettext("a group is STALLED or STOPPED"), {"rule": "stalled", "about": "verdict", "for_s": "60"}),
        (gettext("a group misses its objective"), {"rule": "objective", "about": "objective", "for_s": "300"}),
        (gettext("dead letters come"), {"rule": "dead-letters", "about": "dead_letters", "threshold": "1"}),
        (
            gettext("members of a group contradict each other"),
            {"rule": "conflict", "about": "conflict", "for_s": "120"},
        ),
        (gettext("a broker does not answer"), {"rule": "broker-away", "about": "broker", "for_s": "30"}),
        (gettext("a disk fills up"), {"rule": "disk", "about": "disk", "threshold": "80"}),
        (gettext("a cluster cannot be reached"), {"rule": "cluster-away", "about": "cluster", "for_s": "30"}),
        (
            gettext("something in a cluster is not all right"),
            {"rule": "cluster-verdict", "about": "cluster_verdict", "for_s": "120"},
        ),
    )
    return [
        (words, f"{reverse('set_alert_rule')}?{_query(**values)}")
        for words, values in wanted
        if values["rule"] not in present
    ]


def _tabs() -> list[Tab]:
    words = {
        "alerts": gettext("Now"),
        "history": gettext("History"),
        "rules": gettext("Rules"),
        "channels": gettext("Channels"),
        "silences": gettext("Silences"),
        "deliveries": gettext("Deliveries"),
    }
    return [Tab(key, reverse("alerts" if key == "alerts" else f"alert_{key}"), word) for key, word in words.items()]


def _page(request: HttpRequest, tab: str, context: dict[str, Any]) -> HttpResponse:
    frame = {"section": "alerts", "now": timezone.now(), "tab": tab, "tabs": _tabs()}
    response = render(request, f"console/alert_{tab}.html", {**frame, **context})
    add_never_cache_headers(response)
    return response


def _query(**values: str) -> str:
    query = QueryDict(mutable=True)
    query.update({name: value for name, value in values.items() if value})
    return query.urlencode()
