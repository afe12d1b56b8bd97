"""What a day's page tells is chosen from all groups of the day, each figure by its own measure."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from mqadmin.clusters.models import Cluster
from mqadmin.console.charts import day_charts
from mqadmin.console.report_sentences import day_sentences
from mqadmin.reports import selectors
from mqadmin.reports.models import DayReport, GroupDay

pytestmark = pytest.mark.django_db

DAY = date(2026, 11, 20)
# More groups than the table shows miss their objective, and nothing else is to be said of them.
LATE_COUNT = selectors.GROUPS_SHOWN + 5


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")


def report_of(cluster: Cluster, day: date, **totals: int) -> DayReport:
    sums = {"over_s": 0, "produced": 0, "consumed": 0, "retried": 0, "dead": 0} | totals
    return DayReport.objects.create(
        cluster=cluster, day=day, made_at=datetime(2026, 11, 21, 1, tzinfo=UTC), is_whole=True, digest="",
        folder="none", group_count=1, over_count=LATE_COUNT, **sums,
    )  # fmt: skip


def group(name: str, **figures: Any) -> GroupDay:
    zero = ("known_s", "over_s", "lag_p50", "lag_p95", "lag_p99", "lag_max", "lag_last")
    nothing = dict.fromkeys((*zero, "produced", "consumed", "retried", "dead"), 0)
    return GroupDay(group_name=name, **nothing | {"is_quiet": False, "is_abandoned": False} | figures)


def keep(report: DayReport, *rows: GroupDay) -> None:
    for row in rows:
        row.report = report
    GroupDay.objects.bulk_create(rows)


@pytest.fixture
def crowded(cluster: Cluster) -> DayReport:
    """Many groups miss their objective by seconds; each of the others met it, and is the first of one figure."""
    report = report_of(cluster, DAY, dead=70, retried=900)
    keep(
        report,
        *(
            group(f"late-{number:03}", over_s=9000 - number, lag_p95=3, lag_max=4, dead=1, retried=1, produced=5,
                  produced_before=5, skew=2.1, hot_queue="orders/a/0")
            for number in range(LATE_COUNT)
        ),
        group("deadly", dead=15, failures=[["shop.Refused", "orders", 15]]),
        group("retrying", retried=845),
        group("lagging", lag_p95=5000, lag_max=9000),
        group("hot", skew=7.5, lag_max=900, lag_p95=800, hot_queue="orders/a/3"),
        group("growing", produced=9_000_000, produced_before=4_000_000),
        group("uneven", produced=8_000, produced_skew=3.0, skewed_queue="orders/b/1"),
        group("odd", anomalies=[[14, "silence", 0, 700]]),
        group("torn", conflict_s=5000, conflict_kind="topics"),
        group("short", forecast_high_s=90.0, most_out_s=20.0),
        group("ample", forecast_high_s=190.0, most_out_s=200.0),
    )  # fmt: skip
    return report


def test_each_sentence_is_about_the_first_of_its_figure_among_all_groups(cluster: Cluster, crowded: DayReport) -> None:
    page = selectors.day_page(cluster, DAY)
    assert {row.group_name for row in page.groups} == {f"late-{number:03}" for number in range(selectors.GROUPS_SHOWN)}
    told = " ".join(day_sentences(page))
    for words in (
        "70 messages died, most in deadly, of Refused.",
        "Unusual in odd at 14:00",
        "Members of torn did not subscribe to the same",
        "In hot the queue orders/a/3 has 7.5 times the lag of an even one.",
        "Keys are uneven in what uneven consumes: orders/b/1 gets 3.0 times its share.",
        "In 30 days short may have to consume up to 90",
    ):
        assert words in told
    assert "ample" not in told


def test_each_chart_begins_with_the_first_of_its_figure_among_all_groups(cluster: Cluster, crowded: DayReport) -> None:
    charts = {chart.key: chart for chart in day_charts(selectors.day_page(cluster, DAY))}
    firsts = {key: chart.rows[0][0] for key, chart in charts.items()}
    assert firsts == {
        "hours": "late-000",
        "lag": "lagging",
        "growth": "growing",
        "funnel": "consumed",
        "retries": "retrying",
        "skew": "hot",
    }
    assert [row[0] for row in charts["retries"].rows[:3]] == ["retrying", "deadly", "late-000"]
    assert {len(chart.rows) for key, chart in charts.items() if key not in ("hours", "funnel")} == {
        selectors.GROUPS_CHOSEN
    }


def test_got_worse_is_by_each_figure_the_most_urgent_first_and_above_its_floor(cluster: Cluster) -> None:
    before = report_of(cluster, DAY - timedelta(days=7))
    keep(before, group("retrying", retried=50), group("waved", retried=1000), group("spared", retried=1))
    keep(
        report_of(cluster, DAY),
        group("late", over_s=4000, over_s_before=3940),  # not half as much again
        group("later", over_s=120, over_s_before=60),
        group("latest", over_s=600, over_s_before=0),
        group("second", over_s=59, over_s_before=0),  # below the floor
        group("deadly", dead=12, dead_before=2),
        group("dying", dead=11, dead_before=2),  # nine more
        group("retrying", retried=150),
        group("waved", retried=1100),
        group("spared", retried=100),
        group("slow", lag_p95=350.5, lag_p95_before=200.0),
        group("new", over_s=9999, dead=99, retried=999, lag_p95=9999),
        group("both", over_s=61, over_s_before=1, dead=500, dead_before=0),
    )
    page = selectors.day_page(cluster, DAY)
    assert [(one.group_name, one.figure, one.now, one.before) for one in page.worse] == [
        ("latest", "over_s", 600, 0),
        ("both", "over_s", 61, 1),
        ("later", "over_s", 120, 60),
        ("deadly", "dead", 12, 2),
        ("retrying", "retried", 150, 50),
        ("slow", "lag_p95", 350.5, 200.0),
    ]
    assert day_sentences(page)[:3] == [
        "latest got worse: over its objective for 10 m 00 s, a week before for 0 s.",
        "both got worse: over its objective for 1 m 01 s, a week before for 1 s.",
        "later got worse: over its objective for 2 m 00 s, a week before for 1 m 00 s.",
    ]


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"dead": 12, "dead_before": 2}, "g got worse: 12 dead letters, a week before 2."),
        (
            {"lag_p95": 1350.4, "lag_p95_before": 200.0},
            "g got worse: for 95% of the time its lag was at most 1,350, a week before 200.",
        ),
    ],
)
def test_got_worse_says_by_which_figure(cluster: Cluster, figures: dict[str, Any], words: str) -> None:
    keep(report_of(cluster, DAY), group("g", **figures))
    assert day_sentences(selectors.day_page(cluster, DAY))[0] == words


def test_got_worse_takes_retries_from_the_report_of_a_week_before(cluster: Cluster) -> None:
    keep(report_of(cluster, DAY - timedelta(days=7)), group("g", retried=10))
    keep(report_of(cluster, DAY), group("g", retried=300))
    assert day_sentences(selectors.day_page(cluster, DAY))[0] == "g got worse: 300 retries, a week before 10."


def test_a_page_costs_the_same_statements_however_many_groups(
    cluster: Cluster, crowded: DayReport, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(20):
        selectors.day_page(cluster, DAY)
