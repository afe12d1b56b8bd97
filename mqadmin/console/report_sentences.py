"""What a report says in words, made from its figures: the title, what got worse first, who is quiet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils import formats
from django.utils.translation import gettext, ngettext

from mqadmin.console.figures import count_text, duration_text
from mqadmin.reports.models import DayReport, GroupDay
from mqadmin.reports.selectors import DayPage

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
        *_against_yesterday(page),
        *_hot(page.groups),
        *_dead(page),
    ]


def _worse(worse: Sequence[GroupDay]) -> Iterator[str]:
    for row in worse[:NAMED_MAX]:
        before_s = row.over_s_before or 0
        words = gettext("%(group)s got worse: over its objective for %(now)s, a week before for %(before)s.")
        yield words % {
            "group": row.group_name,
            "now": duration_text(row.over_s * 1000),
            "before": duration_text(before_s * 1000),
        }


def _abandoned(abandoned: Sequence[GroupDay]) -> Iterator[str]:
    for row in abandoned[:NAMED_MAX]:
        words = gettext("Nobody consumed for %(group)s all day; %(lag)s messages wait.")
        yield words % {"group": row.group_name, "lag": count_text(row.lag_last)}


def _against_yesterday(page: DayPage) -> Iterator[str]:
    now, before = page.report, page.before
    if before is None or not before.produced:
        return
    percent = round(100 * (now.produced - before.produced) / before.produced)
    if percent > PERCENT_MAX:
        yield gettext("Many times as many messages came in as on the day before.")
    elif percent > 0:
        yield gettext("%(percent)s%% more messages came in than on the day before.") % {"percent": percent}
    elif percent < 0:
        yield gettext("%(percent)s%% fewer messages came in than on the day before.") % {"percent": -percent}


def _hot(groups: Sequence[GroupDay]) -> Iterator[str]:
    hot = max((row for row in groups if row.skew and row.lag_max), key=lambda row: row.lag_p95, default=None)
    if hot is not None:
        words = gettext("In %(group)s the queue %(queue)s has %(skew)s times the lag of an even one.")
        yield words % {"group": hot.group_name, "queue": hot.hot_queue, "skew": hot.skew}


def _dead(page: DayPage) -> Iterator[str]:
    if not page.report.dead:
        return
    words = ngettext("%(n)s message died", "%(n)s messages died", page.report.dead) % {
        "n": count_text(page.report.dead)
    }
    most = max(page.groups, key=lambda row: row.dead)
    if most.dead and most.top_failure:
        yield gettext("%(died)s, most in %(group)s, of %(failure)s.") % {
            "died": words,
            "group": most.group_name,
            "failure": most.top_failure.rpartition(".")[2],
        }
    else:
        yield gettext("%(died)s.") % {"died": words}
