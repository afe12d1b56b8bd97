"""Draws a group's curves as inline SVG by the server, so that the page needs no script and keeps its strict policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from mqadmin.console import figures, sparkline
from mqadmin.console.sparkline import Box
from mqadmin.lag.curves import Curves, QueueCurve
from mqadmin.lag.hot_window import Gap
from remoting.wire.bodies.message_queue import MessageQueue

BOX = Box(720, 120)
# Key in the address → how far back. The last is all that the hot window has.
RANGES: Mapping[str, timedelta] = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "48h": timedelta(hours=48),
}
DEFAULT_RANGE = "1h"


@dataclass(frozen=True, slots=True)
class RangeLink:
    key: str
    words: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class CurveLine:
    title: str
    highest: str
    svg: SafeString


@dataclass(frozen=True, slots=True)
class QueueCurveLine:
    queue: MessageQueue
    key: str
    lag: int | None
    svg: SafeString


def range_links(chosen: str) -> list[RangeLink]:
    return [
        RangeLink(key, figures.round_duration_text(int(length.total_seconds())), key == chosen)
        for key, length in RANGES.items()
    ]


def queue_key(queue: MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def curve_lines(curves: Curves, rebalances: Sequence[datetime], chosen: str) -> list[CurveLine]:
    """Returns what of the group is drawn; of a queue that was chosen its lag alone."""
    one = next((curve for curve in curves.queues if queue_key(curve.queue) == chosen), None)
    if one is not None:
        return _lines(curves, rebalances, {gettext("lag"): one.lags})
    points = curves.points
    return _lines(
        curves,
        rebalances,
        {
            gettext("lag"): [point.lag for point in points],
            gettext("produced per second"): [point.in_per_s for point in points],
            gettext("consumed per second"): [point.out_per_s for point in points],
            gettext("longest wait, in seconds"): [point.waiting_s for point in points],
            gettext("dead letters"): [point.dead for point in points],
        },
    )


def queue_curve_lines(curves: Curves) -> list[QueueCurveLine]:
    return [QueueCurveLine(one.queue, queue_key(one.queue), one.lag, _small(one)) for one in curves.queues]


def gap_words(gaps: Sequence[Gap]) -> list[str]:
    """Returns each gap as a sentence."""
    return [f"{_utc(gap.at_s)} – {_utc(gap.until_s)}: {gap.note or gettext('no sample was taken')}" for gap in gaps]


def _lines(
    curves: Curves, rebalances: Sequence[datetime], series: Mapping[str, Sequence[float | None]]
) -> list[CurveLine]:
    found = []
    for title, values in series.items():
        drawn = sparkline.draw(values, BOX, top_min=1)
        if drawn is not None:
            highest = max(value for value in values if value is not None)
            words = gettext("at most %(highest)s") % {"highest": f"{highest:,.10g}"}
            found.append(CurveLine(title, words, _svg(drawn, BOX, f"{title}, {words}", _marks(curves, rebalances))))
    return found


def _small(curve: QueueCurve) -> SafeString:
    drawn = sparkline.draw(curve.lags, sparkline.WIDE)
    return SafeString("–") if drawn is None else _svg(drawn, sparkline.WIDE, gettext("lag over time"), SafeString(""))


def _marks(curves: Curves, rebalances: Sequence[datetime]) -> SafeString:
    length_s = (curves.until - curves.since).total_seconds()
    places = [
        (round(BOX.width * (at - curves.since).total_seconds() / length_s, 1), BOX.height)
        for at in rebalances
        if curves.since <= at <= curves.until
    ]
    return format_html_join("", '<path class="rebalance" d="M{} 0V{}"/>', places)


def _svg(drawn: sparkline.Sparkline, box: Box, label: str, marks: SafeString) -> SafeString:
    values: dict[str, Any] = {"width": box.width, "height": box.height, "line": drawn.line, "area": drawn.area}
    return format_html(
        '<svg class="sparkline" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img"'
        ' aria-label="{label}"><path class="floor" d="M0 {height}H{width}"/>{marks}<path class="area" d="{area}"/>'
        '<path d="{line}"/></svg>',
        label=label,
        marks=marks,
        **values,
    )


def _utc(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S}"
