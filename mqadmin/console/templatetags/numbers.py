"""Template tags for figures, times and ages: `{% load numbers %}`.

A value that is not known is None and reads "unknown". Ages are <time> elements, which live.js updates while the page
is open. Everything is escaped: names come from clients.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext

from mqadmin.clusters.figures import Behind, BehindMethod, DrainConfidence, DrainKind, Figure
from mqadmin.clusters.models import Group, TopicQueue
from mqadmin.clusters.moments import moment_or_none
from mqadmin.console import figures

register = template.Library()

# an age beyond this is marked: two cycles of sampling
OLD_AFTER = timedelta(seconds=30)
# smaller versions of subscriptions count something else: September 2001
MOMENTS_BEGIN_MS = 1_000_000_000_000
# as mqadmin/lag/verdicts.py calls it
KEEPS_UP = "keeps_up"
READ_PERMISSION = 4
WRITE_PERMISSION = 2


def unknown() -> SafeString:
    return format_html('<span class="unknown">{}</span>', gettext("unknown"))


@register.simple_tag
def dash(reason: str = "") -> SafeString:
    """Writes a dash where a figure does not apply; the reason on hover."""
    return format_html('<span class="unknown" title="{}">–</span>', reason)


@register.filter
def count(value: float | None) -> str:
    """Writes a count: 12049 → 12,049, a mean of counts as the nearest one; None → unknown."""
    return unknown() if value is None else figures.count_text(round(value))


@register.filter
def rate(value: float | None) -> str:
    """Writes a rate as figures have it; None → unknown."""
    return unknown() if value is None else figures.rate_text(value)


@register.simple_tag
def figure(seen: Figure, now: datetime, kind: str = "count") -> SafeString:
    """Writes a figure with its age on hover, muted when it is old. `kind` is "count" or "rate"."""
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
    """Returns how many messages the queue stores."""
    return queue.max_offset - queue.min_offset


@register.filter
def seconds_text(seconds: float) -> str:
    """Writes a duration given in seconds: 80 → "1 m 20 s"."""
    return figures.duration_text(round(seconds * figures.SECOND_MS))


@register.filter
def latency(seconds: float) -> str:
    """Writes a duration given in seconds, in milliseconds below a second: 0.08 → "80 ms"."""
    return figures.lateness_text(round(seconds * figures.SECOND_MS))


@register.filter
def lateness(late_ms: int) -> str:
    """Writes how late a delivery was, in milliseconds below a second."""
    return figures.lateness_text(late_ms)


@register.filter
def permission(perm: int | None) -> str:
    """Writes RocketMQ's perm bits in words."""
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
    """Writes the age of an observation, marked when it is older than OLD_AFTER. The time is on hover."""
    if moment is None:
        return unknown()
    old = SafeString(" data-old") if now - moment > OLD_AFTER else ""
    doubt = format_html(' data-fresh-s="{}"{}', int(OLD_AFTER.total_seconds()), old)
    return _time("age", moment, figures.age_text(moment, now), doubt)


@register.simple_tag
def since(moment: datetime | None, now: datetime) -> SafeString:
    """Writes when something happened, as an age that is never marked as old."""
    return unknown() if moment is None else _time("age", moment, figures.age_text(moment, now))


@register.filter
def moment(ms: int) -> datetime | None:
    """Returns the moment that a client told in ms since the epoch."""
    return moment_or_none(ms)


@register.simple_tag
def next_due(moment: datetime | None, now: datetime) -> SafeString:
    """Writes when the next thing is due: "in 12 s", "now" once that moment is past, a dash when nothing waits."""
    if moment is None:
        return dash(gettext("nothing is waiting"))
    text = figures.age_text(moment, now) if moment > now else gettext("now")
    return format_html('<span title="{}">{}</span>', _full(moment), text)


@register.simple_tag
def attempt_of(number: int, limit: int | None) -> str:
    """Writes which attempt it is: "3 of 17", where it is known of how many, and that number is not behind already."""
    if limit is None or number > limit:
        return figures.count_text(number)
    return gettext("%(number)s of %(limit)s") % {
        "number": figures.count_text(number),
        "limit": figures.count_text(limit),
    }


@register.simple_tag
def units_of_time() -> dict[str, str]:
    """Returns the units in which live.js goes on counting."""
    return {"s": figures.second(), "m": figures.minute(), "h": figures.hour(), "d": figures.day()}


@register.simple_tag
def elapsed(moment: datetime, now: datetime) -> SafeString:
    """Writes the time since `moment` with two units: "12 m 05 s"."""
    return _time("elapsed", moment, _elapsed(moment, now))


@register.simple_tag
def clock(moment: datetime) -> SafeString:
    """Writes the time of day; live.js converts it to the viewer's time zone."""
    local = timezone.localtime(moment)
    return format_html(
        '<time data-clock datetime="{}" title="{}">{}</time>',
        moment.isoformat(timespec="milliseconds"),
        _full(moment),
        local.strftime("%H:%M:%S"),
    )


@register.simple_tag
def version(sub_version: int) -> SafeString:
    """Writes the version of a subscription: clients use the time at which they subscribed, in ms since the epoch."""
    at = moment_or_none(sub_version) if sub_version > MOMENTS_BEGIN_MS else None
    return clock(at) if at is not None else format_html("{}", sub_version)


@register.simple_tag
def behind(waiting: Behind, lag: Figure | int | None, now: datetime) -> SafeString:
    """Writes how long the next message has been waiting; "≥" where only a minimum is known."""
    value = lag.value if isinstance(lag, Figure) else lag
    if value == 0:
        return dash(gettext("no messages wait"))
    if value is None or waiting.since is None:
        return unknown()
    if waiting.is_just_seen:
        return dash(gettext("the messages that wait came with the newest sample"))
    return format_html(
        '<span title="{}">{}{}</span>',
        _behind_title(waiting.told_method),
        "≥ " if waiting.is_at_least else "",
        elapsed(waiting.since, waiting.seen_until(now)),
    )


@register.filter
def behind_method(waiting: Behind) -> str:
    """Returns how the time is known, in a word; "" where nothing waits, or it is not known."""
    if waiting.is_just_seen:
        return ""
    words = {BehindMethod.EXACT: gettext("exact"), BehindMethod.FROM_SAMPLES: gettext("from samples"), None: ""}
    return words[waiting.told_method]


def _behind_title(method: BehindMethod | None) -> str:
    match method:
        case BehindMethod.EXACT:
            return gettext("exact: since the store time of the next message")
        case BehindMethod.FROM_SAMPLES:
            return gettext("from samples: at least since the first that found the next message")
        case None:
            return ""


@register.simple_tag
def objective(group: Group, now: datetime) -> SafeString:
    """Writes how long the next message may wait, and whether that holds: "1 m ✓"."""
    if group.allowed_lag_s is None:
        return unknown()
    allowed = figures.round_duration_text(group.allowed_lag_s)
    if group.allowed_lag is not None:
        allowed = gettext("%(wait)s, %(count)s messages") % {"wait": allowed, "count": f"{group.allowed_lag:,}"}
    said = gettext("set for %(name)s") % {"name": group.objective_of} if group.objective_of else gettext("the default")
    holds = group.is_within_objective(now)
    if holds is None:
        return format_html('<span title="{}">{}</span>', said, allowed)
    return format_html(
        '<span title="{}">{} <span class="is-{}" aria-label="{}">{}</span></span>',
        said,
        allowed,
        "ok" if holds else "stalled",
        gettext("holds") if holds else gettext("does not hold"),
        "✓" if holds else "✗",
    )


@register.simple_tag
def drain(group: Group) -> SafeString:
    """Writes when the lag will be gone, and how far to rely on it; a dash for a group that keeps up."""
    if group.verdict_rule == KEEPS_UP:
        return dash(gettext("keeps up"))
    when = group.drain
    match when.kind:
        case DrainKind.NOW:
            return dash(gettext("no messages wait"))
        case DrainKind.IN if when.seconds is not None:
            return _with_confidence(figures.duration_text(round(when.seconds) * figures.SECOND_MS), when.confidence)
        case DrainKind.NEVER:
            reason = gettext("messages are produced faster than they are consumed, or as fast")
            return _with_confidence(
                format_html('<span title="{}">{}</span>', reason, gettext("never")), when.confidence
            )
        case _:
            return unknown()


def _with_confidence(text: str, confidence: DrainConfidence | None) -> SafeString:
    words = {
        DrainConfidence.STEADY: (
            pgettext("drain", "steady"),
            gettext("the lag of the last five minutes went the same way in both halves"),
        ),
        DrainConfidence.UNEVEN: (
            pgettext("drain", "uneven"),
            gettext("the two halves of the last five minutes differ by more than twice: the later one counts"),
        ),
        DrainConfidence.FEW_SAMPLES: (
            pgettext("drain", "few samples"),
            gettext("the last five minutes were not sampled without a gap: by the present rates"),
        ),
    }
    if confidence is None:
        return format_html("{}", text)
    word, rule = words[confidence]
    return format_html('{} <span class="muted small" title="{}">{}</span>', text, rule, word)


def _elapsed(moment: datetime, now: datetime) -> str:
    return figures.duration_text(max(0, figures.milliseconds(now - moment)))


def _time(kind: str, moment: datetime, text: str, further: SafeString | str = "") -> SafeString:
    # A table has thousands. Only the text is of others' making: translations.
    stamp = moment.isoformat(timespec="milliseconds")
    doubt = conditional_escape(further)
    return SafeString(f'<time class="{kind}" datetime="{stamp}" title="{_full(moment)}"{doubt}>{escape(text)}</time>')


def _full(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")
