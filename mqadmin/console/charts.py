"""Charts of pages: what Plotly draws in the browser, and what a page with charts allows its script.

A page names its charts; `components/chart.html` puts each as JSON beside its table, and `static/charts.js` draws it in
the colours of the theme. Plotly's own script is served from its wheel. It sets style attributes, so pages with charts,
and only these, allow them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from csp.constants import UNSAFE_INLINE
from csp.decorators import csp_update
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from mqadmin.reports.models import GroupDay
from mqadmin.reports.selectors import GROUPS_DRAWN

# Bars next to each other that can be read on a phone.
BARS_MAX = 12
HOURS = 24
ROW_PX = 22
HEAD_PX = 90
HEIGHT_PX_MIN = 260


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure. `data`: Plotly's; `tone` of a trace names a colour of the theme. `columns`, `rows`: its table."""

    key: str
    title: str
    data: Sequence[Mapping[str, Any]]
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    height_px: int = HEIGHT_PX_MIN
    unit: str = ""
    bar_mode: str = "group"

    @property
    def figure(self) -> dict[str, Any]:
        """What charts.js gets."""
        return {"data": list(self.data), "height": self.height_px, "unit": self.unit, "barmode": self.bar_mode}


def with_charts(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Lets the scripts of a view's page set style attributes."""
    return csp_update({"style-src-attr": [UNSAFE_INLINE]})(view)


def day_charts(groups: Sequence[GroupDay]) -> list[Chart]:
    """Returns the charts of a day that have something to show. `groups`: the worst first."""
    drawn = [_heat_map(groups), _lag(groups), _growth(groups), _retries(groups), _skew(groups)]
    return [chart for chart in drawn if chart is not None]


def _heat_map(groups: Sequence[GroupDay]) -> Chart | None:
    """Minutes over the objective, hour by hour; white where nothing was sampled."""
    shown = groups[:GROUPS_DRAWN]
    if not shown:
        return None
    minutes = [_by_hour(row) for row in shown]
    names = [row.group_name for row in shown]
    return Chart(
        key="hours",
        title=gettext("Minutes over the objective, by hour (UTC)"),
        data=[{"type": "heatmap", "x": list(range(HOURS)), "y": names, "z": minutes, "zmin": 0, "zmax": 60}],
        columns=[gettext("group"), *map(str, range(HOURS))],
        rows=[[name, *values] for name, values in zip(names, minutes, strict=True)],
        height_px=max(HEIGHT_PX_MIN, HEAD_PX + ROW_PX * len(shown)),
        unit=gettext("minutes"),
    )


def _by_hour(row: GroupDay) -> list[float | None]:
    over = {hour: round(over_s / 60, 1) for hour, known_s, _, _, over_s in row.hours if known_s}
    return [over.get(hour) for hour in range(HOURS)]


def _lag(groups: Sequence[GroupDay]) -> Chart | None:
    return _bars(
        "lag",
        gettext("Lag: median, 95th percentile, most"),
        sorted((row for row in groups if row.lag_max), key=lambda row: -row.lag_p95),
        {
            gettext("median"): ("quiet", lambda row: row.lag_p50),
            gettext("95th percentile"): ("accent", lambda row: row.lag_p95),
            gettext("most"): ("slow", lambda row: row.lag_max),
        },
    )


def _growth(groups: Sequence[GroupDay]) -> Chart | None:
    return _bars(
        "growth",
        gettext("Messages that came in, beside the same weekday before"),
        sorted((row for row in groups if row.produced_before is not None), key=lambda row: -row.produced),
        {
            gettext("a week before"): ("quiet", lambda row: row.produced_before),
            gettext("this day"): ("accent", lambda row: row.produced),
        },
    )


def _retries(groups: Sequence[GroupDay]) -> Chart | None:
    return _bars(
        "retries",
        gettext("From consumed to dead: retries and dead letters"),
        sorted((row for row in groups if row.retried or row.dead), key=lambda row: -(row.retried + row.dead)),
        {
            gettext("retried"): ("slow", lambda row: row.retried),
            gettext("dead"): ("stalled", lambda row: row.dead),
        },
    )


def _skew(groups: Sequence[GroupDay]) -> Chart | None:
    return _bars(
        "skew",
        gettext("Hot queues: lag of the fullest queue over that of an even one"),
        sorted((row for row in groups if row.skew), key=lambda row: -(row.skew or 0)),
        {gettext("times an even queue"): ("rewound", lambda row: row.skew)},
    )


def _bars(
    key: str,
    title: str,
    rows: Sequence[GroupDay],
    series: Mapping[str, tuple[str, Callable[[GroupDay], float | None]]],
) -> Chart | None:
    """Returns lying bars, a row a group; None without any row."""
    shown = rows[:BARS_MAX]
    if not shown:
        return None
    names = [row.group_name for row in shown]
    return Chart(
        key=key,
        title=title,
        data=[
            {"type": "bar", "orientation": "h", "name": name, "tone": tone, "y": names, "x": [of(row) for row in shown]}
            for name, (tone, of) in series.items()
        ],
        columns=[gettext("group"), *series],
        rows=[[row.group_name, *(of(row) for _, of in series.values())] for row in shown],
        height_px=max(HEIGHT_PX_MIN, HEAD_PX + ROW_PX * len(shown) * len(series)),
    )
