"""Charts of pages: what Plotly draws in the browser, and what a page with charts allows its script.

A page names its charts; `components/chart.html` puts each as JSON beside its table, and `static/charts.js` draws it in
the colours of the theme. Plotly's own script is served from its wheel. It sets style attributes, and saves a chart by
way of an image with an address of the browser's own (`blob:`), so pages with charts, and only these, allow both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from csp.constants import UNSAFE_INLINE
from csp.decorators import csp_update
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from mqadmin.console.figures import count_text
from mqadmin.reports.installed import can_draw
from mqadmin.reports.models import GroupDay, HourOfDay
from mqadmin.reports.period_figures import PeriodPage
from mqadmin.reports.selectors import GROUPS_CHOSEN, GROUPS_DRAWN, DayPage

HOURS = 24
_HOUR_NAMES = tuple(f"{hour}:00" for hour in range(HOURS))
# Each is a figure of its own.
RIBBONS_MAX = 3
ROW_PX = 22
HEAD_PX = 90
HEIGHT_PX_MIN = 260
# Of names one below the other: few of them don't become as high as bricks.
ROWS_PX_MIN = 150
FUNNEL_PX = 200


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure. `data`: Plotly's; `tone` of a trace names a colour of the theme. `columns`, `rows`: its table.

    `is_upright`: numbers upwards over hours or days; else names one below the other.
    """

    key: str
    title: str
    data: Sequence[Mapping[str, Any]]
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    height_px: int = HEIGHT_PX_MIN
    unit: str = ""
    bar_mode: str = "group"
    is_upright: bool = False

    @property
    def figure(self) -> dict[str, Any]:
        """What charts.js gets."""
        return {
            "data": list(self.data),
            "height": self.height_px,
            "unit": self.unit,
            "barmode": self.bar_mode,
            "upright": self.is_upright,
        }


def with_charts(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Lets the scripts of a view's page set style attributes, and draw a PNG from an image that they made."""
    return csp_update({"style-src-attr": [UNSAFE_INLINE], "img-src": ["blob:"]})(view)


def drawn(charts: Sequence[Chart]) -> dict[str, Any]:
    """Returns what a page with these charts needs. Without Plotly only their tables are there, and the page says so."""
    return {"charts": charts, "is_drawn": can_draw()}


def day_charts(page: DayPage) -> list[Chart]:
    """Returns the charts of a day that have something to show. The funnel is of all groups."""
    report = page.report
    ribbons = (_hour_ribbon(f"ribbon{number}", row) for number, row in enumerate(page.lagging[:RIBBONS_MAX]))
    found = [_heat_map(page.groups), _lag(page.lagging), *ribbons, _growth(page.grown)]
    found += [_funnel(report.consumed, report.retried, report.dead), _retries(page.retried), _skew(page.skewed)]
    return [chart for chart in found if chart is not None]


def period_charts(page: PeriodPage) -> list[Chart]:
    """Returns the charts of a week or a month that have something to show."""
    days = [f"{day:%m-%d}" for day in page.period.days]
    of_day = {report.day: report for report in page.days}
    before = {report.day: report for report in page.days_before}
    now = [of_day.get(day) for day in page.period.days]
    then = [before.get(day) for day in page.period.before.days[: len(days)]]
    then += [None] * (len(days) - len(then))

    def totals(key: str, title: str, name: str, tone: str) -> Chart:
        return _upright(
            key,
            title,
            days,
            {
                gettext("the period before"): ("quiet", [getattr(one, name, None) for one in then]),
                gettext("this period"): (tone, [getattr(one, name, None) for one in now]),
            },
            first=gettext("day"),
        )

    found = [
        _day_heat_map(page, days),
        *_ribbons(page, days),
        _funnel(*(sum(getattr(report, name) for report in page.days) for name in ("consumed", "retried", "dead"))),
        totals("produced", gettext("Messages that came in, beside the period before"), "produced", "accent"),
        totals("retried", gettext("Retries, beside the period before"), "retried", "slow"),
        totals("dead", gettext("Dead letters, beside the period before"), "dead", "stalled"),
    ]
    return [chart for chart in found if chart and any(any(value for value in row[1:]) for row in chart.rows)]


def group_day_charts(row: GroupDay) -> list[Chart]:
    """Returns the charts of a group on a day, hour by hour."""
    known = _known_hours(row)
    means = [None if one is None else one.lag_mean for one in known]
    most = [None if one is None else one.lag_max for one in known]
    found = [
        _hour_ribbon("lag", row)
        or _upright(
            "lag",
            gettext("Lag by hour (UTC): mean, most"),
            _HOUR_NAMES,
            {gettext("most"): ("slow", most), gettext("mean"): ("accent", means)},
            first=gettext("hour"),
            lines=True,
        ),
        _upright(
            "over",
            gettext("Minutes over the objective, by hour (UTC)"),
            _HOUR_NAMES,
            {gettext("minutes"): ("stalled", _over_by_hour(row))},
            first=gettext("hour"),
        ),
        _funnel(row.consumed, row.retried, row.dead),
    ]
    return [chart for chart in found if chart is not None]


def _known_hours(row: GroupDay) -> list[HourOfDay | None]:
    """Returns the 24 hours of a group; None where its lag is not known."""
    known = {one.hour: one for one in row.by_hour if one.known_s}
    return [known.get(hour) for hour in range(HOURS)]


def _hour_ribbon(key: str, row: GroupDay) -> Chart | None:
    """Returns the lag of a group hour by hour: a band from the median to the 95th percentile, and the most.

    None for a report that was made before hours had percentiles.
    """
    found = _known_hours(row)
    if all(one is None or one.lag_p50 is None for one in found):
        return None
    title = gettext("Lag of %(group)s by hour (UTC): median to 95th percentile, most") % {"group": row.group_name}
    return _ribbon(key, title, _HOUR_NAMES, found, first=gettext("hour"))


def _day_heat_map(page: PeriodPage, days: Sequence[str]) -> Chart:
    """Minutes over the objective, day by day; white where there is no report."""
    shown = [group for group in page.groups if group.over_s] or page.groups
    names = [group.group_name for group in shown[:GROUPS_DRAWN]]
    over = {(row.group_name, f"{row.report.day:%m-%d}"): round(row.over_s / 60) for row in page.drawn}
    minutes = [[over.get((name, day)) for day in days] for name in names]
    most = max((value or 0 for row in minutes for value in row), default=0) or 1
    return Chart(
        key="days",
        title=gettext("Minutes over the objective, by day (UTC)"),
        # Without both bounds the colours begin at the least.
        data=[{"type": "heatmap", "x": list(days), "y": names, "z": minutes, "zmin": 0, "zmax": most}],
        columns=[gettext("group"), *days],
        rows=[[name, *values] for name, values in zip(names, minutes, strict=True)],
        height_px=max(ROWS_PX_MIN, HEAD_PX + ROW_PX * len(names)),
        unit=gettext("minutes"),
    )


def _ribbons(page: PeriodPage, days: Sequence[str]) -> Iterator[Chart]:
    """Yields the lag of the worst groups day by day: a band from the median to the 95th percentile, and the most."""
    for number, group in enumerate(page.groups[:RIBBONS_MAX]):
        rows = {f"{row.report.day:%m-%d}": row for row in page.drawn if row.group_name == group.group_name}
        found = [rows.get(day) for day in days]
        title = gettext("Lag of %(group)s by day: median to 95th percentile, most") % {"group": group.group_name}
        yield _ribbon(f"ribbon{number}", title, days, found, first=gettext("day"))


def _ribbon(
    key: str, title: str, x: Sequence[str], found: Sequence[GroupDay | HourOfDay | None], *, first: str
) -> Chart:
    """Returns a band with its edges, and a line. Where a row is missing both are interrupted."""
    median, high, most = (
        [None if row is None else getattr(row, name) for row in found] for name in ("lag_p50", "lag_p95", "lag_max")
    )
    names = (gettext("median"), gettext("95th percentile"), gettext("most"))
    corners = [corner for part in _unbroken(found) for corner in (*_outline(part, x, median, high), (None, None))]
    line = {"type": "scatter", "mode": "lines+markers", "x": list(x)}
    return Chart(
        key=key,
        title=title,
        data=[
            {
                "type": "scatter",
                "mode": "none",
                "fill": "toself",
                "tone": "accent",
                "is_band": True,
                "name": gettext("median to 95th percentile"),
                "x": [day for day, _lag in corners],
                "y": [lag for _day, lag in corners],
            },
            # The edges of the band are named where somebody points at them.
            {**line, "name": names[1], "tone": "accent", "y": high, "width": 1, "showlegend": False},
            {**line, "name": names[0], "tone": "quiet", "y": median, "showlegend": False},
            {**line, "name": names[2], "tone": "slow", "y": most},
        ],
        columns=[first, *names],
        rows=[list(row) for row in zip(x, median, high, most, strict=True)],
        is_upright=True,
    )


def _unbroken(found: Sequence[object]) -> Iterator[range]:
    """Yields the places of rows that stand next to each other.

    >>> list(_unbroken(["a", "b", None, "c"]))
    [range(0, 2), range(3, 4)]
    """
    begin = 0
    for place, row in enumerate([*found, None]):
        if row is None:
            if place > begin:
                yield range(begin, place)
            begin = place + 1


def _outline(
    part: range, x: Sequence[str], low: Sequence[float | None], high: Sequence[float | None]
) -> list[tuple[str, float | None]]:
    """Returns the corners of a band: along its upper edge, and back along the lower one."""
    return [*((x[place], high[place]) for place in part), *((x[place], low[place]) for place in reversed(part))]


def _upright(
    key: str,
    title: str,
    x: Sequence[str],
    series: Mapping[str, tuple[str, Sequence[float | None]]],
    *,
    first: str,
    lines: bool = False,
) -> Chart:
    """Returns bars, or lines, over days or hours. Nothing is filled: that would go on over days without a report."""
    kind = {"type": "scatter", "mode": "lines+markers"} if lines else {"type": "bar"}
    return Chart(
        key=key,
        title=title,
        data=[
            {**kind, "name": name, "tone": tone, "x": list(x), "y": list(values)}
            for name, (tone, values) in series.items()
        ],
        columns=[first, *series],
        rows=[[one, *(values[at] for _, values in series.values())] for at, one in enumerate(x)],
        is_upright=True,
    )


def _heat_map(groups: Sequence[GroupDay]) -> Chart | None:
    """Minutes over the objective, hour by hour; white where nothing was sampled."""
    # Rows without any colour only push those that have some off a screen.
    shown = ([row for row in groups if row.over_s] or groups)[:GROUPS_DRAWN]
    if not shown:
        return None
    minutes = [_over_by_hour(row) for row in shown]
    names = [row.group_name for row in shown]
    return Chart(
        key="hours",
        title=gettext("Minutes over the objective, by hour (UTC)"),
        data=[{"type": "heatmap", "x": list(range(HOURS)), "y": names, "z": minutes, "zmin": 0, "zmax": 60}],
        columns=[gettext("group"), *map(str, range(HOURS))],
        rows=[[name, *values] for name, values in zip(names, minutes, strict=True)],
        height_px=max(ROWS_PX_MIN, HEAD_PX + ROW_PX * len(shown)),
        unit=gettext("minutes"),
    )


def _over_by_hour(row: GroupDay) -> list[float | None]:
    """Returns how many minutes of each hour were over the objective; None where nothing is known."""
    return [None if one is None else round(one.over_s / 60, 1) for one in _known_hours(row)]


def _lag(groups: Sequence[GroupDay]) -> Chart | None:
    return _bars(
        "lag",
        gettext("Lag: median, 95th percentile, most"),
        groups,
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
        groups,
        {
            gettext("a week before"): ("quiet", lambda row: row.produced_before),
            gettext("this day"): ("accent", lambda row: row.produced),
        },
    )


def _retries(groups: Sequence[GroupDay]) -> Chart | None:
    return _bars(
        "retries",
        gettext("Groups with most retries and dead letters"),
        groups,
        {
            gettext("retried"): ("slow", lambda row: row.retried),
            gettext("dead"): ("stalled", lambda row: row.dead),
        },
    )


def _funnel(consumed: int, retried: int, dead: int) -> Chart | None:
    """Returns how many of the messages came back, and how many died; None where none did."""
    if not retried and not dead:
        return None
    steps = (
        (gettext("consumed"), "accent", consumed),
        (gettext("retried"), "slow", retried),
        (gettext("dead"), "stalled", dead),
    )
    counts = [count for _name, _tone, count in steps]
    shares = [f"{100 * count / consumed:.3g} %" if consumed else "–" for count in counts]
    return Chart(
        key="funnel",
        title=gettext("From consumed to dead: retries and dead letters"),
        data=[
            {
                "type": "funnel",
                "x": counts,
                "y": [name for name, _tone, _count in steps],
                "text": [
                    count_text(count) if number == 0 else f"{count_text(count)} · {share}"
                    for number, (count, share) in enumerate(zip(counts, shares, strict=True))
                ],
                "tones": [tone for _name, tone, _count in steps],
            }
        ],
        columns=[gettext("step"), gettext("messages"), gettext("of those consumed")],
        rows=[[name, count, share] for (name, _tone, count), share in zip(steps, shares, strict=True)],
        height_px=FUNNEL_PX,
    )


def _skew(groups: Sequence[GroupDay]) -> Chart | None:
    return _bars(
        "skew",
        gettext("Hot queues: lag of the fullest queue over that of an even one"),
        groups,
        {gettext("times an even queue"): ("rewound", lambda row: row.skew)},
    )


def _bars(
    key: str,
    title: str,
    rows: Sequence[GroupDay],
    series: Mapping[str, tuple[str, Callable[[GroupDay], float | None]]],
) -> Chart | None:
    """Returns lying bars, a row a group, as many as can be read on a phone; None without any row."""
    shown = rows[:GROUPS_CHOSEN]
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
        height_px=max(ROWS_PX_MIN, HEAD_PX + ROW_PX * len(shown) * len(series)),
    )
