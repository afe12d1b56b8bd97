"""Template tags for status marks, sparklines, sortable table headers and chips. `{% load marks %}`.

No mark writes an inline style, which the pages' content security policy forbids, and none says by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext, ngettext

from mqadmin.clusters import cluster_reasons
from mqadmin.clusters.cluster_verdict import ClusterJudgement
from mqadmin.clusters.models import ClusterState, Group, TopicKind
from mqadmin.console import sparkline, status_marks
from mqadmin.console.listing import Listing
from mqadmin.console.stored_words import in_viewers_language
from mqadmin.console.templatetags.numbers import dash
from mqadmin.lag import verdicts
from mqadmin.lag.selectors import lag_points
from remoting.wire.names import split_namespace

register = template.Library()

SPARK_WINDOW = timedelta(hours=1)


@register.simple_tag
def status(name: str) -> SafeString:
    """Returns the mark of a status: shape, colour and word."""
    return _status(name, get_language())


# A table has thousands, and there are as many as statuses and languages.
@lru_cache(maxsize=256)
def _status(name: str, _language: str | None) -> SafeString:
    mark = status_marks.mark_of(name)
    return format_html(
        '<span class="status is-{}"><svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">{}</svg>'
        "{}</span>",
        mark.tone,
        mark.shape,
        mark.word,
    )


@register.filter
def name_parts(name: str) -> SafeString:
    """Returns the name of a topic or group, its namespace apart."""
    namespace, rest = split_namespace(name)
    if not namespace:
        return format_html("{}", name)
    return format_html(
        '<span class="namespace" title="{}">{}</span> {}',
        gettext("namespace %(name)s") % {"name": namespace},
        namespace,
        rest,
    )


@register.filter
def class_name(path: str) -> str:
    """Returns the name of a class without its module: "KeyError" of "shop.errors.KeyError"."""
    return path.rpartition(".")[2]


@register.filter
def stored_words(text: str) -> str:
    """Returns a sentence that a row keeps, in the viewer's language."""
    return in_viewers_language(text)


@register.filter
def cluster_status(state: str) -> str:
    """Returns the status mark's name of a cluster's state."""
    names = {ClusterState.REACHABLE: "ok", ClusterState.PARTIAL: "partial", ClusterState.UNREACHABLE: "unreachable"}
    return names.get(ClusterState(state), "unknown")


@register.filter
def cluster_reason(judged: ClusterJudgement) -> str:
    """Returns why a cluster has its verdict, in words."""
    return cluster_reasons.cluster_reason(judged)


@register.filter
def notice_status(level: str) -> str:
    """Returns the status mark's name of a notice's level."""
    return {"success": "done", "error": "refused", "warning": "late"}.get(level, "note")


@register.filter
def topic_kind(kind: str) -> str:
    words = {
        TopicKind.NORMAL: gettext("normal"),
        TopicKind.RETRY: gettext("retry"),
        TopicKind.DEAD_LETTER: gettext("dead letters"),
        TopicKind.SYSTEM: gettext("system"),
    }
    return words[TopicKind(kind)]


@register.filter
def verdict_reason(group: Group) -> str:
    """Returns why the group has its verdict, in words."""
    return verdicts.reason(group.verdict_rule, group.verdict_numbers)


@register.simple_tag
def lag_sparkline(packed: bytes | memoryview | str, now: datetime, size: str = "small") -> SafeString:
    """Draws the last hour of a lag as inline SVG; a dash with too few observations. `size`: small or wide.

    `packed` is a stored history (`mqadmin/lag/history.py`), "" where a template found none.
    """
    box = sparkline.WIDE if size == "wide" else sparkline.SMALL
    points = lag_points(packed or b"", now) if not isinstance(packed, str) else []
    values = sparkline.resampled(points, now - SPARK_WINDOW, now)
    drawn = sparkline.draw(values, box)
    if drawn is None:
        return dash(gettext("too few observations yet"))
    highest = max(value for value in values if value is not None)
    return _svg(drawn, box, gettext("lag over the last hour, at most %(highest)s") % {"highest": f"{highest:,}"})


@register.simple_tag
def trend_sparkline(hours: Sequence[int]) -> SafeString:
    """Draws how many came in each hour, the present one last, as inline SVG."""
    words = ngettext("%(count)s in the last %(hours)d hours", "%(count)s in the last %(hours)d hours", sum(hours))
    return _hours(hours, words)


@register.simple_tag
def first_hours_sparkline(hours: Sequence[int]) -> SafeString:
    """Draws how many came in each of the first hours, as inline SVG."""
    words = ngettext("%(count)s in the first %(hours)d hours", "%(count)s in the first %(hours)d hours", sum(hours))
    return _hours(hours, words)


def _hours(hours: Sequence[int], words: str) -> SafeString:
    drawn = sparkline.draw(hours, sparkline.SMALL, top_min=1)
    if drawn is None:
        return dash()
    return _svg(drawn, sparkline.SMALL, words % {"count": f"{sum(hours):,}", "hours": len(hours)})


def _svg(drawn: sparkline.Sparkline, box: sparkline.Box, label: str) -> SafeString:
    end = format_html('<circle cx="{}" cy="{}" r="1.75"/>', *drawn.end) if drawn.end else ""
    return format_html(
        '<svg class="sparkline" width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<path class="floor" d="M0 {}H{}"/><path class="area" d="{}"/><path d="{}"/>{}</svg>',
        box.width,
        box.height,
        box.width,
        box.height,
        label,
        box.height - 0.5,
        box.width,
        drawn.area,
        drawn.line,
        end,
    )


@register.simple_tag
def event_icon(kind: str) -> SafeString:
    """Returns the icon of a rebalance event: an arrow in for a member that joins, out for one that leaves."""
    return format_html(
        '<svg width="14" height="14" viewBox="0 0 14 14" stroke-linecap="round" stroke-linejoin="round" '
        'aria-hidden="true">{}</svg>',
        status_marks.EVENT_SHAPES.get(kind, status_marks.EVENT_SHAPES["subscription_changed"]),
    )


@register.simple_tag
def sort_header(listing: Listing, key: str, label: str, kind: str = "") -> SafeString:
    """Returns a column header that sorts by `key` when clicked; `kind` is the cells' class ("number" aligns right)."""
    direction = listing.direction_of(key)
    return format_html(
        '<th scope="col" class="{}"{}><a class="sort" href="{}">{}'
        '<svg width="8" height="8" viewBox="0 0 8 8" aria-hidden="true"><path d="M4 7 .8 1.6h6.4z" '
        'fill="currentColor"/></svg></a></th>',
        kind,
        format_html(' aria-sort="{}"', direction) if direction else "",
        listing.sorted_by(key),
        label,
    )


@register.simple_tag
def chips(words: Iterable[Any]) -> SafeString:
    """Returns short labels in a row, such as queue ids."""
    return format_html_join("", '<span class="chip">{}</span>', ((word,) for word in words))
