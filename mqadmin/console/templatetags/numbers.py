"""Numbers, times and ages in templates: `{% load numbers %}`.

What is not known is None and reads "unknown". Times that go on are <time> elements, which live.js keeps true while the
page is open. Everything is escaped: names come from strangers.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from mqadmin.clusters.figures import Behind, DrainKind, Figure
from mqadmin.clusters.models import Group, TopicQueue
from mqadmin.console import figures

register = template.Library()

# an age beyond this is marked: two cycles of sampling
OLD_AFTER = timedelta(seconds=30)
# as mqadmin/lag/verdicts.py calls it
KEEPS_UP = "keeps_up"
READ_PERMISSION = 4
WRITE_PERMISSION = 2


def unknown() -> SafeString:
    return format_html('<span class="unknown">{}</span>', gettext("unknown"))


@register.simple_tag
def dash(reason: str = "") -> SafeString:
    """A dash where a figure does not apply; the reason on hover."""
    return format_html('<span class="unknown" title="{}">–</span>', reason)


@register.filter
def count(value: int | None) -> str:
    """12049 → 12,049; None → unknown."""
    return unknown() if value is None else figures.count_text(value)


@register.simple_tag
def figure(seen: Figure, now: datetime, kind: str = "count") -> SafeString:
    """A number with the age of the observation on hover, quiet when old. `kind` is "count" or "rate"."""
    if seen.value is None:
        return unknown()
    text = figures.rate_text(seen.value) if kind == "rate" else figures.count_text(int(seen.value))
    if seen.seen_at is None:
        return format_html("<span>{}</span>", text)
    is_old = now - seen.seen_at > OLD_AFTER
    title = gettext("updated %(age)s") % {"age": figures.age_text(seen.seen_at, now)}
    return format_html('<span title="{}"{}>{}</span>', title, SafeString(' class="muted"') if is_old else "", text)


@register.filter
def stored(queue: TopicQueue) -> int:
    """How many messages lie in the queue."""
    return queue.max_offset - queue.min_offset


@register.filter
def lateness(late_ms: int) -> str:
    """How late a delivery was: milliseconds below a second."""
    return f"{late_ms:,} ms" if late_ms < figures.SECOND_MS else figures.duration_text(late_ms)


@register.filter
def permission(perm: int | None) -> str:
    """RocketMQ's perm bits in words."""
    if perm is None:
        return unknown()
    words = {
        READ_PERMISSION | WRITE_PERMISSION: gettext("read and write"),
        READ_PERMISSION: gettext("read only"),
        WRITE_PERMISSION: gettext("write only"),
    }
    return words.get(perm & (READ_PERMISSION | WRITE_PERMISSION), gettext("neither read nor write"))


@register.simple_tag
def age(moment: datetime | None, now: datetime) -> SafeString:
    """How old an observation is; one beyond OLD_AFTER is marked. The time itself on hover."""
    if moment is None:
        return unknown()
    old = SafeString(" data-old") if now - moment > OLD_AFTER else ""
    doubt = format_html(' data-fresh-s="{}"{}', int(OLD_AFTER.total_seconds()), old)
    return _time("age", moment, figures.age_text(moment, now), doubt)


@register.simple_tag
def since(moment: datetime | None, now: datetime) -> SafeString:
    """When something happened, as an age that says nothing of doubt."""
    return unknown() if moment is None else _time("age", moment, figures.age_text(moment, now))


@register.simple_tag
def next_due(moment: datetime | None, now: datetime) -> SafeString:
    """When something falls due: "in 12 s", or "now" for what fell due since the broker said so; a dash for nothing."""
    if moment is None:
        return dash(gettext("nothing is waiting"))
    text = figures.age_text(moment, now) if moment > now else gettext("now")
    return format_html('<span title="{}">{}</span>', _full(moment), text)


@register.simple_tag
def elapsed(moment: datetime, now: datetime) -> SafeString:
    """How long something has lasted, exactly: "12 m 05 s"."""
    return _time("elapsed", moment, _elapsed(moment, now))


@register.simple_tag
def clock(moment: datetime) -> SafeString:
    """The time of day; live.js writes it in the viewer's own zone."""
    local = timezone.localtime(moment)
    return format_html(
        '<time data-clock datetime="{}" title="{}">{}</time>',
        moment.isoformat(timespec="milliseconds"),
        _full(moment),
        local.strftime("%H:%M:%S"),
    )


@register.simple_tag
def behind(waiting: Behind, lag: Figure | int | None, now: datetime) -> SafeString:
    """How long the next message has been waiting; "≥" where that is only known as "at least"."""
    value = lag.value if isinstance(lag, Figure) else lag
    if value == 0:
        return dash(gettext("no messages wait"))
    if value is None or waiting.since is None:
        return unknown()
    return format_html("{}{}", "≥ " if waiting.is_at_least else "", elapsed(waiting.since, now))


@register.simple_tag
def drain(group: Group) -> SafeString:
    """When the lag will be gone at the present rates; a group that keeps up always has a few messages in flight."""
    if group.verdict_rule == KEEPS_UP:
        return dash(gettext("keeps up"))
    when = group.drain
    match when.kind:
        case DrainKind.NOW:
            return dash(gettext("no messages wait"))
        case DrainKind.IN if when.seconds is not None:
            return format_html("{}", figures.duration_text(round(when.seconds) * figures.SECOND_MS))
        case DrainKind.NEVER:
            reason = gettext("messages are produced faster than they are consumed")
            return format_html('<span title="{}">{}</span>', reason, gettext("never"))
        case _:
            return unknown()


def _elapsed(moment: datetime, now: datetime) -> str:
    return figures.duration_text(max(0, figures.milliseconds(now - moment)))


def _time(kind: str, moment: datetime, text: str, further: SafeString | str = "") -> SafeString:
    return format_html(
        '<time class="{}" datetime="{}" title="{}"{}>{}</time>',
        kind,
        moment.isoformat(timespec="milliseconds"),
        _full(moment),
        further,
        text,
    )


def _full(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")
