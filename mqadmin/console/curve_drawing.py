"""Draws a group's curves as inline SVG by the server, so that the page needs no script and keeps its strict policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from mqadmin.console import figures, sparkline
from mqadmin.console.curve_range import RANGES, CurveRange
from mqadmin.console.sparkline import Box
from mqadmin.lag.curves import Curves, QueueCurve
from mqadmin.lag.hot_window import Gap
from remoting.wire.bodies.message_queue import MessageQueue

BOX = Box(720, 120)
# Into how many slices a curve is cut; one tells its highest value, and leads to a shorter range around it.
SLICES = 24


@dataclass(frozen=True, slots=True)
class RangeLink:
    address: str
    words: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class CurveLine:
    title: str
    highest: str
    svg: SafeString


@dataclass(frozen=True, slots=True)
class QueueCurveLine:
    """`address`: of the page of this queue alone."""

    queue: MessageQueue
    address: str
    lag: int | None
    svg: SafeString


def range_links(chosen: CurveRange) -> list[RangeLink]:
    return [
        RangeLink(
            chosen.as_long_as(key).address,
            figures.round_duration_text(int(length.total_seconds())),
            key == chosen.key,
        )
        for key, length in RANGES.items()
    ]


def queue_key(queue: MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def curve_lines(curves: Curves, rebalances: Sequence[datetime], chosen: CurveRange) -> list[CurveLine]:
    """Returns what of the group is drawn; of a queue that was chosen its lag alone."""
    one = next((curve for curve in curves.queues if queue_key(curve.queue) == chosen.queue), None)
    if one is not None:
        return _lines(curves, rebalances, chosen, {gettext("lag"): one.lags})
    points = curves.points
    return _lines(
        curves,
        rebalances,
        chosen,
        {
            gettext("lag"): [point.lag for point in points],
            gettext("produced per second"): [point.in_per_s for point in points],
            gettext("consumed per second"): [point.out_per_s for point in points],
            gettext("longest wait, in seconds"): [point.waiting_s for point in points],
            gettext("dead letters"): [point.dead for point in points],
        },
    )


def queue_curve_lines(curves: Curves, chosen: CurveRange) -> list[QueueCurveLine]:
    return [
        QueueCurveLine(one.queue, chosen.of_queue(queue_key(one.queue)).address, one.lag, _small(one))
        for one in curves.queues
    ]


def gap_words(gaps: Sequence[Gap]) -> list[str]:
    """Returns each gap as a sentence."""
    return [f"{_utc(gap.at_s)} – {_utc(gap.until_s)}: {gap.note or gettext('no sample was taken')}" for gap in gaps]


def _lines(
    curves: Curves,
    rebalances: Sequence[datetime],
    chosen: CurveRange,
    series: Mapping[str, Sequence[float | None]],
) -> list[CurveLine]:
    found = []
    for title, values in series.items():
        drawn = sparkline.draw(values, BOX, top_min=1)
        if drawn is not None:
            words = _at_most(values)
            inside = _marks(curves, rebalances) + _slices(curves, values, chosen)
            found.append(CurveLine(title, words, _svg(drawn, BOX, f"{title}, {words}", inside, stretched=True)))
    return found


def _at_most(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return gettext("at most %(highest)s") % {"highest": f"{max(known):,.10g}"} if known else gettext("not known")


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


def _slices(curves: Curves, values: Sequence[float | None], chosen: CurveRange) -> SafeString:
    """Returns what of the curve answers a pointer: each slice says its highest value, and zooms in on itself.

    Who has no pointer has the links of the ranges beside it, so that five curves do not become a hundred tab stops.
    """
    slices = min(SLICES, len(values))
    length = (curves.until - curves.since) / slices
    drawn = []
    for number in range(slices):
        since = curves.since + length * number
        inside = values[len(values) * number // slices : len(values) * (number + 1) // slices]
        title = f"{since:%H:%M} – {since + length:%H:%M}: {_at_most(inside)}"
        rectangle = format_html(
            '<rect x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>',
            round(BOX.width * number / slices, 1),
            round(BOX.width / slices, 1),
            BOX.height,
            title,
        )
        zoomed = chosen.zoomed(since + length / 2, curves.until)
        drawn.append(
            rectangle if zoomed is None else format_html('<a href="{}" tabindex="-1">{}</a>', zoomed.address, rectangle)
        )
    return format_html_join("", "{}", ((one,) for one in drawn))


def _svg(
    drawn: sparkline.Sparkline, box: Box, label: str, inside: SafeString, *, stretched: bool = False
) -> SafeString:
    values: dict[str, Any] = {"width": box.width, "height": box.height, "line": drawn.line, "area": drawn.area}
    return format_html(
        '<svg class="sparkline" width="{width}" height="{height}" viewBox="0 0 {width} {height}"{stretch} role="{role}"'
        ' aria-label="{label}"><path class="floor" d="M0 {height}H{width}"/><path class="area" d="{area}"/>'
        '<path d="{line}"/>{inside}</svg>',
        label=label,
        inside=inside,
        stretch=SafeString(' preserveAspectRatio="none"' if stretched else ""),
        # What has links inside is no picture to a screen reader.
        role="group" if stretched else "img",
        **values,
    )


def _utc(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S}"
