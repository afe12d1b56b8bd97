"""Draws a map of flows as inline SVG, by the server: producers → topic → groups → retry → dead letters.

A line for each group. The table beside it says the same in text, so to a screen reader the drawing is one image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from mqadmin.console import figures
from mqadmin.console.status_marks import mark_of
from mqadmin.flows.selectors import FlowMap, GroupFlow, Side, TopicFlow

# Left edges of the columns and their width, in SVG's units; between two is room for what stands on the edge.
PRODUCERS, TOPIC, GROUP, RETRY, DEAD = 0, 190, 492, 792, 940
WIDTHS = {PRODUCERS: 116, TOPIC: 160, GROUP: 190, RETRY: 80, DEAD: 100}
WIDTH = 1040
ROW = 46
BOX = 30
HEAD = 24
# What fits into a box; the title has the rest.
CHARS = {TOPIC: 22, GROUP: 25}


@dataclass(frozen=True, slots=True)
class _Place:
    left: int
    middle: float

    @property
    def right(self) -> int:
        return self.left + WIDTHS[self.left]


def draw(flows: FlowMap) -> SafeString:
    """Returns the drawing; "" where there is no topic."""
    if not flows.topics:
        return SafeString("")
    heights = [max(1, len(one.groups) + bool(one.more_count)) for one in flows.topics]
    height = HEAD + ROW * sum(heights)
    parts, top = [_heads()], HEAD
    producers = _Place(PRODUCERS, HEAD + (height - HEAD) / 2)
    for flow, rows in zip(flows.topics, heights, strict=True):
        parts.extend(_topic(flows, flow, top, rows, producers))
        top += ROW * rows
    parts.append(_producers(flows, producers))
    return format_html(
        '<svg class="flow" viewBox="0 0 {} {}" width="{}" height="{}" role="group" aria-label="{}">{}</svg>',
        WIDTH,
        height,
        WIDTH,
        height,
        gettext("Map of flows; the table has the same"),
        format_html_join("", "{}", ((part,) for part in parts)),
    )


def _heads() -> SafeString:
    words = (
        (PRODUCERS, gettext("producers")),
        (TOPIC, gettext("topic")),
        (GROUP, gettext("group")),
        (RETRY, gettext("retries")),
        (DEAD, gettext("dead letters")),
    )
    return format_html_join("", '<text class="flow-head" x="{}" y="14">{}</text>', words)


def _producers(flows: FlowMap, place: _Place) -> SafeString:
    count = sum(one.client_count for one in flows.producers)
    words = ngettext("%(n)s seen", "%(n)s seen", count) % {"n": f"{count:,}"} if count else gettext("none seen")
    return _box(place, words, ", ".join(one.name for one in flows.producers))


def _topic(flows: FlowMap, flow: TopicFlow, top: float, rows: int, producers: _Place) -> Iterator[SafeString]:
    name = flow.topic.name
    topic = _Place(TOPIC, top + ROW * rows / 2)
    yield _edge(producers, topic, _rate(flow.topic.in_per_s), "flow-unsure")
    for number, one in enumerate(flow.groups):
        yield from _group(flows, one, topic, _Place(GROUP, top + ROW * (number + 0.5)))
    if flow.more_count:
        middle = top + ROW * (rows - 0.5)
        words = ngettext("%(n)s more group", "%(n)s more groups", flow.more_count) % {"n": f"{flow.more_count:,}"}
        yield format_html('<text class="flow-more" x="{}" y="{}">{}</text>', GROUP, middle + 4, words)
    url = reverse("topic", args=[flows.cluster.name, name])
    yield _link(url, _box(topic, _cut(name, TOPIC), name))


def _group(flows: FlowMap, one: GroupFlow, topic: _Place, place: _Place) -> Iterator[SafeString]:
    name, tone = one.group.name, mark_of(one.group.verdict).tone
    lag = gettext("lag %(n)s") % {"n": _known(one.lag)}
    yield _edge(topic, place, " · ".join(filter(None, (_consumed(one), lag))), f"is-{tone}")
    end = place
    if one.retry is not None:
        retry = _Place(RETRY, place.middle)
        yield _edge(place, retry, _rate(one.retry.in_per_s), "is-slow" if one.retry.in_per_s else "")
        yield _box(retry, _stored(one.retry), one.retry.topic)
        end = retry
    if one.dead is not None:
        dead = _Place(DEAD, place.middle)
        yield _edge(end, dead, _rate(one.dead.in_per_s), "is-stalled" if one.dead.in_per_s else "")
        url = reverse("group_dead_letters", args=[flows.cluster.name, name])
        yield _link(url, _box(dead, _stored(one.dead), one.dead.topic))
    yield _link(reverse("group", args=[flows.cluster.name, name]), _box(place, _cut(name, GROUP), name, tone))


def _stored(side: Side) -> str:
    return _known(side.count)


def _consumed(one: GroupFlow) -> str:
    """Returns how much the group takes from the topic; of one that reads several only the sum is known."""
    if one.topic_count <= 1 or not one.out_per_s:
        return _rate(one.out_per_s)
    return gettext("≤ %(n)s/s") % {"n": figures.rate_text(one.out_per_s)}


def _rate(per_s: float | None) -> str:
    # Nothing is written where nothing is known: 0 it is not.
    return "" if per_s is None else gettext("%(n)s/s") % {"n": figures.rate_text(per_s)}


def _known(count: int | None) -> str:
    return "–" if count is None else figures.count_text(count)


def _box(place: _Place, words: str, title: str, tone: str = "") -> SafeString:
    shape = mark_tone = SafeString("")
    if tone:
        mark_tone = format_html(" is-{}", tone)
        shape = format_html(
            '<rect class="flow-tone" x="{}" y="{}" width="5" height="{}"/>', place.left, place.middle - BOX / 2, BOX
        )
    return format_html(
        '<g class="flow-box{}"><title>{}</title><rect x="{}" y="{}" width="{}" height="{}" rx="4"/>{}'
        '<text x="{}" y="{}">{}</text></g>',
        mark_tone,
        title,
        place.left,
        place.middle - BOX / 2,
        WIDTHS[place.left],
        BOX,
        shape,
        place.left + 12,
        place.middle + 4,
        words,
    )


def _link(url: str, drawn: SafeString) -> SafeString:
    # The table has the links for the keyboard.
    return format_html('<a href="{}" tabindex="-1">{}</a>', url, drawn)


def _edge(begin: _Place, end: _Place, words: str, tone: str) -> SafeString:
    half = (end.left - begin.right) / 2
    middle = begin.right + half
    return format_html(
        '<g class="flow-edge {}"><path d="M{} {}C{} {} {} {} {} {}"/><text x="{}" y="{}">{}</text></g>',
        tone,
        begin.right,
        begin.middle,
        middle,
        begin.middle,
        middle,
        end.middle,
        end.left,
        end.middle,
        end.left - 6,
        # Beside the line, on the side that it does not come from.
        end.middle + (14 if end.middle > begin.middle else -5),
        words,
    )


def _cut(name: str, column: int) -> str:
    length = CHARS[column]
    return name if len(name) <= length else f"{name[: length - 1]}…"
