"""What a report says in words, made from its figures: the title, what got worse first, who is quiet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.utils import formats
from django.utils.translation import gettext, ngettext

from mqadmin.console.figures import count_text, duration_text, rate_text
from mqadmin.reports.models import DayReport, GroupDay
from mqadmin.reports.period_figures import PeriodPage
from mqadmin.reports.periods import Period, PeriodKind
from mqadmin.reports.selectors import DayPage, Worse

# Groups that a sentence names; the table has the others.
NAMED_MAX = 3
PERCENT_MAX = 999


def day_title(report: DayReport, worst: GroupDay | None) -> str:
    """Returns a day's title: how many missed their objective, and which was the worst."""
    day = formats.date_format(report.day, "DATE_FORMAT")
    if not report.group_count:
        return gettext("Nothing was sampled on %(day)s") % {"day": day}
    if not report.over_count or worst is None:
        return gettext("Every group met its objective on %(day)s") % {"day": day}
    words = ngettext(
        "%(n)s group missed its objective on %(day)s: %(group)s, for %(time)s",
        "%(n)s groups missed their objective on %(day)s; %(group)s was the worst, for %(time)s",
        report.over_count,
    )
    n = count_text(report.over_count)
    return words % {"n": n, "day": day, "group": worst.group_name, "time": duration_text(worst.over_s * 1000)}


def day_sentences(page: DayPage) -> list[str]:
    """Returns what stands below the title, the most urgent first."""
    return [
        *_worse(page.worse),
        *_abandoned(page.abandoned),
        *_unusual(page.unusual),
        *_in_conflict(page.in_conflict),
        *_against_yesterday(page),
        *_hot(page.hot),
        *_skewed(page.uneven),
        *_retried(page.report),
        *_dead(page),
        *_short(page.short),
    ]


def period_name(period: Period) -> str:
    """Returns a week's or a month's name."""
    if period.kind == PeriodKind.MONTH:
        return formats.date_format(period.since, "YEAR_MONTH_FORMAT")
    values = {"week": period.key, "since": period.since.isoformat(), "until": period.until.isoformat()}
    return gettext("week %(week)s (%(since)s to %(until)s)") % values


def period_title(page: PeriodPage) -> str:
    """Returns how many groups missed their objective, and which was the worst."""
    name = period_name(page.period)
    if not page.over_count:
        return gettext("Every group met its objective: %(period)s") % {"period": name}
    worst = page.groups[0]
    words = ngettext(
        "%(n)s group missed its objective: %(group)s, for %(time)s; %(period)s",
        "%(n)s groups missed their objective, %(group)s for longest, %(time)s; %(period)s",
        page.over_count,
    )
    time = duration_text(worst.over_s * 1000)
    return words % {"n": count_text(page.over_count), "group": worst.group_name, "time": time, "period": name}


def period_sentences(page: PeriodPage) -> list[str]:
    """Returns what stands below the title, the most urgent first."""
    return [*_period_worse(page), *_period_came(page), *_period_dead(page), *_period_days(page)]


def _period_worse(page: PeriodPage) -> Iterator[str]:
    words = (
        gettext("What got worse first: %(group)s was over its objective for %(now)s a day, before for %(before)s."),
        gettext("Then %(group)s: %(now)s a day, before %(before)s."),
    )
    for number, group in enumerate(page.worse[:NAMED_MAX]):
        yield words[min(number, 1)] % {
            "group": group.group_name,
            "now": duration_text(1000 * group.over_s // group.day_count),
            "before": duration_text(1000 * (group.over_s_before or 0) // group.day_count_before),
        }


def _period_came(page: PeriodPage) -> Iterator[str]:
    """Compares a day with a day: either period may lack some."""
    now, before = _whole(page.days), _whole(page.days_before)
    was = sum(report.produced for report in before)
    if not now or not was:
        return
    percent = round(100 * (sum(report.produced for report in now) / len(now) * len(before) / was - 1))
    if percent > PERCENT_MAX:
        yield gettext("Many times as many messages came in a day as in the period before.")
    elif percent > 0:
        yield gettext("%(percent)s%% more messages came in a day than in the period before.") % {"percent": percent}
    elif percent < 0:
        yield gettext("%(percent)s%% fewer messages came in a day than in the period before.") % {"percent": -percent}


def _whole(days: Sequence[DayReport]) -> list[DayReport]:
    return [report for report in days if report.is_whole]


def _period_dead(page: PeriodPage) -> Iterator[str]:
    dead = sum(report.dead for report in page.days)
    if dead:
        most = max(page.groups, key=lambda one: one.dead)
        words = ngettext("%(n)s message died, in %(group)s.", "%(n)s messages died, most in %(group)s: %(most)s.", dead)
        yield words % {"n": count_text(dead), "group": most.group_name, "most": count_text(most.dead)}


def _period_days(page: PeriodPage) -> Iterator[str]:
    """Tells days without a report from those of which none can be there yet, or was made."""
    latest = page.days[-1].day
    missing = (latest - page.period.since).days + 1 - len(page.days)
    if missing:
        words = ngettext(
            "%(n)s day of it has no report; sums are of the others.",
            "%(n)s days of it have no report; sums are of the others.",
            missing,
        )
        yield words % {"n": missing}
    if latest < page.period.until:
        yield gettext("Its last report is that of %(day)s.") % {"day": latest.isoformat()}


def anomaly_text(anomaly: Sequence[Any]) -> str:
    """Returns in words what was unusual in an hour of a group."""
    hour, reason, value, usual = anomaly
    values = {"value": count_text(round(value)), "usual": count_text(round(usual))}
    return gettext("%(hour)s:00: %(what)s") % {"hour": hour, "what": _UNUSUAL[reason]() % values}


def stage_text(stage: str) -> str:
    """Returns in words what a run does at the moment."""
    return _STAGES[stage]() if stage in _STAGES else stage


_STAGES: Mapping[str, Callable[[], str]] = {
    "sampling": lambda: gettext("waiting for the first samples"),
    "appending": lambda: gettext("adding what is new to the history"),
    "starting": lambda: gettext("starting Spark"),
    "computing": lambda: gettext("computing the figures"),
}
_UNUSUAL: Mapping[str, Callable[[], str]] = {
    "stopped": lambda: gettext("nobody was online, and %(value)s messages waited"),
    "flood": lambda: gettext("%(value)s messages came in; %(usual)s are usual"),
    "failing": lambda: gettext("%(value)s messages failed; %(usual)s are usual"),
    "slow": lambda: gettext("less was consumed than usual, and %(value)s messages waited"),
    "silence": lambda: gettext("only %(value)s messages came in; %(usual)s are usual"),
    "lag": lambda: gettext("%(value)s messages waited; %(usual)s are usual"),
}


def _worse(worse: Sequence[Worse]) -> Iterator[str]:
    for one in worse[:NAMED_MAX]:
        yield _GOT_WORSE[one.figure](one)


def _named(one: Worse, text: Callable[[int], str]) -> dict[str, str]:
    return {"group": one.group_name, "now": text(round(one.now)), "before": text(round(one.before))}


_GOT_WORSE: Mapping[str, Callable[[Worse], str]] = {
    "over_s": lambda one: (
        gettext("%(group)s got worse: over its objective for %(now)s, a week before for %(before)s.")
        % _named(one, lambda seconds: duration_text(seconds * 1000))
    ),
    "dead": lambda one: (
        gettext("%(group)s got worse: %(now)s dead letters, a week before %(before)s.") % _named(one, count_text)
    ),
    "retried": lambda one: (
        gettext("%(group)s got worse: %(now)s retries, a week before %(before)s.") % _named(one, count_text)
    ),
    "lag_p95": lambda one: (
        gettext("%(group)s got worse: for 95%% of the time its lag was at most %(now)s, a week before %(before)s.")
        % _named(one, count_text)
    ),
}


def _abandoned(abandoned: Sequence[GroupDay]) -> Iterator[str]:
    for row in abandoned[:NAMED_MAX]:
        words = gettext("Nobody consumed for %(group)s all day; %(lag)s messages wait.")
        yield words % {"group": row.group_name, "lag": count_text(row.lag_last)}


def _unusual(groups: Sequence[GroupDay]) -> Iterator[str]:
    for row in groups[:NAMED_MAX]:
        words = gettext("Unusual in %(group)s at %(what)s.")
        yield words % {"group": row.group_name, "what": anomaly_text(row.anomalies[0])}


def _in_conflict(groups: Sequence[GroupDay]) -> Iterator[str]:
    for row in groups[:NAMED_MAX]:
        words = gettext("Members of %(group)s did not subscribe to the same for %(time)s.")
        yield words % {"group": row.group_name, "time": duration_text(row.conflict_s * 1000)}


def _skewed(groups: Sequence[GroupDay]) -> Iterator[str]:
    for skewed in groups[:1]:
        words = gettext("Keys are uneven in what %(group)s consumes: %(queue)s gets %(skew)s times its share.")
        yield words % {"group": skewed.group_name, "queue": skewed.skewed_queue, "skew": skewed.produced_skew}


def _retried(report: DayReport) -> Iterator[str]:
    if report.retried:
        words = ngettext(
            "%(n)s retry cost messages %(time)s of waiting in retry topics.",
            "%(n)s retries cost messages %(time)s of waiting in retry topics, all together.",
            report.retried,
        )
        yield words % {"n": count_text(report.retried), "time": duration_text(report.retry_wait_s * 1000)}


def _short(groups: Sequence[GroupDay]) -> Iterator[str]:
    for row in groups[:NAMED_MAX]:
        words = gettext(
            "In 30 days %(group)s may have to consume up to %(high)s messages a second in its busiest hour; "
            "the most that it was seen to consume is %(most)s."
        )
        yield words % {
            "group": row.group_name,
            "high": rate_text(row.forecast_high_s or 0),
            "most": rate_text(row.most_out_s or 0),
        }


def _against_yesterday(page: DayPage) -> Iterator[str]:
    now, before = page.report, page.before
    if before is None or not before.produced or not (now.is_whole and before.is_whole):
        return
    percent = round(100 * (now.produced - before.produced) / before.produced)
    if percent > PERCENT_MAX:
        yield gettext("Many times as many messages came in as on the day before.")
    elif percent > 0:
        yield gettext("%(percent)s%% more messages came in than on the day before.") % {"percent": percent}
    elif percent < 0:
        yield gettext("%(percent)s%% fewer messages came in than on the day before.") % {"percent": -percent}


def _hot(groups: Sequence[GroupDay]) -> Iterator[str]:
    for hot in groups[:1]:
        words = gettext("In %(group)s the queue %(queue)s has %(skew)s times the lag of an even one.")
        yield words % {"group": hot.group_name, "queue": hot.hot_queue, "skew": hot.skew}


def _dead(page: DayPage) -> Iterator[str]:
    if not page.report.dead:
        return
    words = ngettext("%(n)s message died", "%(n)s messages died", page.report.dead) % {
        "n": count_text(page.report.dead)
    }
    most = next(iter(page.deadly), None)
    if most is not None and most.top_failure:
        yield gettext("%(died)s, most in %(group)s, of %(failure)s.") % {
            "died": words,
            "group": most.group_name,
            "failure": most.top_failure.rpartition(".")[2],
        }
    else:
        yield gettext("%(died)s.") % {"died": words}
