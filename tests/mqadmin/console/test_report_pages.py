"""Reports on pages and by REST: days, one day in words, figures and tables, and making one."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, date, datetime, timedelta
from io import BytesIO
from typing import Any

import pytest
from django.test import Client

from mqadmin.clusters.models import Cluster
from mqadmin.reports.models import DayReport, GroupDay, ReportRun

DAY = date(2026, 11, 20)


@pytest.fixture
def report(cluster: Cluster) -> DayReport:
    """billing missed its objective for 41 minutes and got worse; a hostile name met it."""
    totals = {"over_s": 2460, "produced": 900, "consumed": 700, "retried": 12, "dead": 3}
    made_at = datetime(2026, 11, 21, 1, tzinfo=UTC)
    common = {
        "cluster": cluster,
        "made_at": made_at,
        "is_whole": True,
        "digest": "",
        "folder": "none",
    }
    DayReport.objects.create(
        day=DAY - timedelta(days=1), group_count=2, over_count=0, **common, **totals | {"produced": 600}
    )
    report = DayReport.objects.create(day=DAY, group_count=2, over_count=1, **common, **totals)
    figures = {
        "known_s": 86_400,
        "lag_p50": 0,
        "lag_p99": 90,
        "lag_max": 100,
        "consumed": 350,
        "hours": [[14, 3600, 2.5, 9, 2460]],
    }
    GroupDay.objects.create(
        report=report, group_name="billing", over_s=2460, over_s_before=60, lag_p95=80, lag_last=5, worst_hour=14,
        produced=450, retried=12, dead=3, members=2, is_quiet=False, is_abandoned=False, hot_queue="orders/a/1",
        skew=4.0, failures=[["shop.PaymentTimeout", "orders", 3]], delivered=350, delivery_p50_s=0.08,
        delivery_p95_s=1.5, delivery_p99_s=95.0, deliveries=[["orders", 350, 0.08, 1.5, 95.0]], **figures,
    )  # fmt: skip
    GroupDay.objects.create(
        report=report, group_name="</script><b>", over_s=0, lag_p95=1, lag_last=0, produced=450, retried=0, dead=0,
        members=0, is_quiet=True, is_abandoned=False, drain_s=0, **figures,
    )  # fmt: skip
    return report


def text(response: Any) -> str:
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def test_a_day_is_told_in_words_made_from_its_figures(http: Client, cluster: Cluster, report: DayReport) -> None:
    page = text(http.get(f"/clusters/{cluster.name}/reports/2026-11-20/"))
    for words in (
        "1 group missed its objective on Nov. 20, 2026: billing, for 41 m 00 s",
        "billing got worse: over its objective for 41 m 00 s, a week before for 1 m 00 s.",
        "In billing the queue orders/a/1 has 4.0 times the lag of an even one.",
        "50% more messages came in than on the day before.",
        "3 messages died, most in billing, of PaymentTimeout.",
    ):
        assert words in page


def test_delivery_latency_is_shown_beside_the_age_of_the_oldest_message(
    http: Client, cluster: Cluster, report: DayReport
) -> None:
    day = text(http.get(f"/clusters/{cluster.name}/reports/2026-11-20/"))
    assert day.index("oldest message") < day.index("delivery latency, 95 %")
    page = text(http.get(f"/clusters/{cluster.name}/reports/2026-11-20/groups/billing/"))
    assert page.count("80 ms, 1.5 s, 1 m 35 s") == 2, "of the group and of its topic"
    assert "age of the oldest message not consumed" in page
    unknown = text(http.get(f"/clusters/{cluster.name}/reports/2026-11-20/groups/%3C%2Fscript%3E%3Cb%3E/"))
    assert "no member told it" in unknown
    row = http.get(f"/api/v1/clusters/{cluster.name}/reports/2026-11-20").json()["items"][0]
    assert (row["delivered"], row["delivery_p95_s"]) == (350, 1.5)
    assert row["deliveries"] == [{"topic": "orders", "delivered": 350, "p50_s": 0.08, "p95_s": 1.5, "p99_s": 95.0}]


def test_what_is_not_known_is_a_dash_below_the_titles_of_the_table(
    http: Client, cluster: Cluster, report: DayReport
) -> None:
    page = text(http.get(f"/clusters/{cluster.name}/reports/2026-11-20/"))
    table = page.partition('id="groups"')[2].partition("</table>")[0]
    titles = re.findall(r'<th scope="col" class="number">([^<]*)</th>', table)
    first = table.partition('data-row="billing"')[2].partition("</tr>")[0]
    figures = dict(zip(titles, re.findall(r"<td[^>]*>([^<]*)</td>", first), strict=True))
    wanted = {
        "over its objective": "41 m 00 s",
        "worst hour": "14:00",
        "drains in": "never",
        "growth": "–",
        "dead": "3",
    }
    assert figures | wanted == figures


def test_each_figure_has_its_table_and_names_cannot_leave_their_json(
    http: Client, cluster: Cluster, report: DayReport
) -> None:
    page = http.get(f"/clusters/{cluster.name}/reports/2026-11-20/").content.decode()
    figures = dict(re.findall(r'<script id="(\w+)" type="application/json">(.*?)</script>', page, re.DOTALL))
    assert {"hours", "lag", "funnel", "retries", "skew"} == set(figures)
    heat = json.loads(figures["hours"])["data"][0]
    assert heat["y"] == ["billing"], "who met the objective all day has no colour in it"
    assert json.loads(figures["lag"])["data"][0]["y"] == ["billing", "</script><b>"]
    assert (heat["z"][0][14], heat["z"][0][15]) == (41.0, None)
    assert page.count('<figure class="chart"') == page.count("<details>") == 5


def test_lag_over_the_hours_is_a_band_that_ends_where_nothing_is_known(
    http: Client, cluster: Cluster, report: DayReport
) -> None:
    """Of 2 and 3 o'clock and of 5 the lag is known, of 4 for no second."""
    hours = [[2, 3600, 3.0, 40, 0, 2.0, 9.5], [3, 3600, 3.0, 50, 0, 3.0, 8.0], [4, 0, 0.0, 0, 0, 0.0, 0.0]]
    GroupDay.objects.filter(group_name="billing").update(hours=[*hours, [5, 60, 1.0, 1, 0, 1.0, 1.0]])
    for address, key in (("2026-11-20/", "ribbon0"), ("2026-11-20/groups/billing/", "lag")):
        page = text(http.get(f"/clusters/{cluster.name}/reports/{address}"))
        assert "Lag of billing by hour (UTC): median to 95th percentile, most" in page
        figures = dict(re.findall(r'<script id="(\w+)" type="application/json">(.*?)</script>', page, re.DOTALL))
        band, high, median, most = json.loads(figures[key])["data"]
        assert list(zip(band["x"], band["y"], strict=True)) == [
            *(("2:00", 9.5), ("3:00", 8.0), ("3:00", 3.0), ("2:00", 2.0), (None, None)),
            *(("5:00", 1.0), ("5:00", 1.0), (None, None)),
        ]
        assert [line["y"][2:6] for line in (high, median, most)] == [
            [9.5, 8.0, None, 1.0],
            [2.0, 3.0, None, 1.0],
            [40, 50, None, 1],
        ]
        assert "ribbon1" not in figures, "the other group's report was made before hours had percentiles"


def test_only_pages_with_charts_may_set_style_attributes_and_make_images(
    http: Client, cluster: Cluster, report: DayReport
) -> None:
    day = http.get(f"/clusters/{cluster.name}/reports/2026-11-20/")
    days = http.get(f"/clusters/{cluster.name}/reports/")
    assert "style-src-attr 'unsafe-inline'" in day["Content-Security-Policy"]
    assert "img-src 'self' data: blob:" in day["Content-Security-Policy"]
    assert not any(word in days["Content-Security-Policy"] for word in ("unsafe-inline", "blob:"))
    assert "plotly" in text(day)
    assert "plotly" not in text(days)


def test_the_list_shows_days_and_why_a_run_failed(http: Client, cluster: Cluster, report: DayReport) -> None:
    ReportRun.objects.create(
        since=DAY, until=DAY, state="failed", asked_at=report.made_at, problem="There is no Java <17>"
    )
    page = http.get(f"/clusters/{cluster.name}/reports/").content.decode()
    assert page.index("2026-11-20/") < page.index("2026-11-19/")
    assert "There is no Java &lt;17&gt;" in page
    assert http.get(f"/clusters/{cluster.name}/reports/never/").status_code == 404
    assert http.get(f"/clusters/{cluster.name}/reports/2026-01-01/").status_code == 404


def test_a_run_under_way_is_told_first_with_its_progress_and_a_failed_one_with_its_reason(
    http: Client, cluster: Cluster
) -> None:
    at = datetime(2026, 11, 21, 1, tzinfo=UTC)
    days = {"since": DAY, "until": DAY, "asked_at": at}
    ReportRun.objects.create(state="failed", problem="The disk with /srv is full", **days)
    ReportRun.objects.create(state="running", stage="computing", percent=47, **days)
    figures = {"tasks": 412, "input_bytes": 3_000_000, "shuffle_bytes": 2_000}
    ReportRun.objects.create(state="done", figures=figures, started_at=at, ended_at=at + timedelta(seconds=47), **days)
    page = text(http.get(f"/clusters/{cluster.name}/reports/")).replace("\xa0", " ")
    first, log = page.split('id="runs"')
    for words in ('class="run-progress"', 'value="47"', "47 %", "computing the figures"):
        assert words in first
    for words in ("The disk with /srv is full", "412", "2.9 MB", "2.0 KB", "47 s"):
        assert words in log


def test_making_a_report_puts_a_run_behind_those_that_wait(
    http: Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqadmin.reports.tasks.wake", lambda: None)
    asked = {"day": "2026-11-20", "days": "2"}
    address = f"/clusters/{cluster.name}/make-report/"
    shown = text(http.get(address, asked))
    key = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', shown))["key"]
    assert "DONE" in text(http.post(address, {**asked, "key": key}, follow=True))
    (run,) = ReportRun.objects.all()
    assert (run.cluster_name, run.since, run.until) == (cluster.name, DAY, DAY + timedelta(days=1))


def test_rest_has_the_days_and_the_groups_of_one_with_the_worst_first(
    http: Client, cluster: Cluster, report: DayReport
) -> None:
    days = http.get(f"/api/v1/clusters/{cluster.name}/reports").json()
    assert [(day["day"], day["over_count"]) for day in days["items"]] == [("2026-11-20", 1), ("2026-11-19", 0)]
    address = f"/api/v1/clusters/{cluster.name}/reports/2026-11-20"
    first = http.get(address, {"limit": 1}).json()
    assert [row["group"] for row in first["items"]] == ["billing"]
    assert first["items"][0]["hours"] == [
        {"hour": 14, "known_s": 3600, "lag_mean": 2.5, "lag_max": 9, "over_s": 2460, "lag_p50": None, "lag_p95": None}
    ]
    second = http.get(address, {"limit": 1, "cursor": first["next_cursor"]}).json()
    assert [row["group"] for row in second["items"]] == ["</script><b>"]
    assert http.get(address, {"format": "csv"})["Content-Type"].startswith("text/csv")
    assert http.get(f"/api/v1/clusters/{cluster.name}/reports/never").status_code == 404


@pytest.fixture
def weeks(cluster: Cluster, report: DayReport) -> None:
    """In the week before, of two days, billing missed its objective for a minute a day, and 300 came in."""
    for number in (1, 2):
        totals = {"over_s": 60, "produced": 300, "consumed": 300, "retried": 0, "dead": 1}
        day = DayReport.objects.create(
            cluster=cluster, day=DAY - timedelta(days=7 + number), made_at=report.made_at, is_whole=True, digest="",
            folder="none", group_count=1, over_count=1, **totals,
        )  # fmt: skip
        GroupDay.objects.create(
            report=day, group_name="billing", known_s=86_400, lag_p50=0, lag_p95=9, lag_p99=9, lag_max=9, lag_last=0,
            is_quiet=False, is_abandoned=False, **totals,
        )  # fmt: skip


def test_a_week_is_told_beside_the_week_before(http: Client, cluster: Cluster, weeks: None) -> None:
    page = text(http.get(f"/clusters/{cluster.name}/reports/2026-W47/"))
    for words in (
        "1 group missed its objective: billing, for 41 m 00 s; week 2026-W47 (2026-11-16 to 2026-11-22)",
        "What got worse first: billing was over its objective for 41 m 00 s a day, before for 1 m 00 s.",
        "150% more messages came in a day than in the period before.",
        "3 days of it have no report; sums are of the others.",
        "Its last report is that of 2026-11-20.",
    ):
        assert words in page
    figures = dict(re.findall(r'<script id="(\w+)" type="application/json">(.*?)</script>', page, re.DOTALL))
    assert {"days", "ribbon0", "ribbon1", "funnel", "produced", "retried", "dead"} == set(figures)
    heat = json.loads(figures["days"])["data"][0]
    assert (heat["x"][4], heat["z"][0][3:5]) == ("11-20", [None, 41])
    assert page.count("<details>") == page.count('<figure class="chart"') == len(figures)


def test_lag_over_days_is_a_band_that_ends_where_a_report_is_missing(
    http: Client, cluster: Cluster, weeks: None
) -> None:
    """11 and 12 November have one, then the 20th; a band's corners go along its upper edge and back."""
    page = text(http.get(f"/clusters/{cluster.name}/reports/2026-11/"))
    figures = dict(re.findall(r'<script id="(\w+)" type="application/json">(.*?)</script>', page, re.DOTALL))
    band, high, median, most = json.loads(figures["ribbon0"])["data"]
    corners = list(zip(band["x"], band["y"], strict=True))
    assert corners == [
        *(("11-11", 9.0), ("11-12", 9.0), ("11-12", 0.0), ("11-11", 0.0), (None, None)),
        *(("11-20", 80.0), ("11-20", 0.0), (None, None)),
    ]
    places = {day: number for number, day in enumerate(most["x"])}
    assert len(places) == 30
    assert [line["y"][places["11-20"]] for line in (high, median, most)] == [80.0, 0.0, 100]
    assert [line["y"][places["11-13"]] for line in (high, median, most)] == [None] * 3


@pytest.mark.parametrize("address", ["2026-11-20/", "2026-W47/", "2026-11-20/groups/billing/"])
def test_a_funnel_says_how_many_of_the_consumed_came_back_and_died(
    http: Client, cluster: Cluster, report: DayReport, address: str
) -> None:
    GroupDay.objects.filter(group_name="billing").update(consumed=700)
    # The day before has no group; a week's funnel is of its days.
    DayReport.objects.exclude(pk=report.pk).update(consumed=0, retried=0, dead=0)
    page = text(http.get(f"/clusters/{cluster.name}/reports/{address}"))
    figures = dict(re.findall(r'<script id="(\w+)" type="application/json">(.*?)</script>', page, re.DOTALL))
    (funnel,) = json.loads(figures["funnel"])["data"]
    assert (funnel["type"], funnel["x"]) == ("funnel", [700, 12, 3])
    assert funnel["text"] == ["700", "12 · 1.71 %", "3 · 0.429 %"]
    table = page.partition('id="chart-funnel"')[2].partition("</table>")[0]
    assert re.findall(r'<td class="number">([^<]*)</td>', table) == ["700", "100 %", "12", "1.71 %", "3", "0.429 %"]


def test_rows_of_a_period_lead_to_the_group_on_its_worst_day(http: Client, cluster: Cluster, weeks: None) -> None:
    reports = f"/clusters/{cluster.name}/reports"
    for address, day in (("2026-11", "2026-11-20"), ("2026-W46", "2026-11-12"), ("2026-11-20", "2026-11-20")):
        page = text(http.get(f"{reports}/{address}/"))
        row = page.partition('data-row="billing"')[2].partition("</tr>")[0]
        assert f'href="{reports}/{day}/groups/billing/"' in row, address
    GroupDay.objects.update(is_quiet=True)
    page = text(http.get(f"{reports}/2026-11-20/"))
    assert f'href="{reports}/2026-11-20/groups/billing/"' in page.partition("Quiet")[2]


def test_a_month_has_its_neighbours_and_its_days(http: Client, cluster: Cluster, weeks: None) -> None:
    page = text(http.get(f"/clusters/{cluster.name}/reports/2026-11/"))
    for address, is_there in {"2026-10/": False, "2026-12/": False, "2026-11-20/": True, "2026-11-11/": True}.items():
        assert (f"/clusters/{cluster.name}/reports/{address}" in page) is is_there
    week = text(http.get(f"/clusters/{cluster.name}/reports/2026-W46/"))
    assert f"/clusters/{cluster.name}/reports/2026-W47/" in week
    assert f"/clusters/{cluster.name}/reports/2026-W45/" not in week
    assert http.get(f"/clusters/{cluster.name}/reports/2026-10/").status_code == 404
    assert http.get(f"/clusters/{cluster.name}/reports/2026-W60/").status_code == 404


def test_a_period_is_sent_as_csv_and_as_parquet(http: Client, cluster: Cluster, weeks: None) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    address = f"/api/v1/clusters/{cluster.name}/reports/periods/2026-W47"
    rows = http.get(address).json()["items"]
    assert [(row["group"], row["over_s"], row["over_s_before"], row["got_worse"]) for row in rows] == [
        ("billing", 2460, 120, True),
        ("</script><b>", 0, None, False),
    ]
    assert http.get(address, {"format": "csv"})["Content-Type"].startswith("text/csv")
    assert http.get(f"/api/v1/clusters/{cluster.name}/reports/periods/2026").status_code == 404
    sent = http.get(f"/clusters/{cluster.name}/reports/2026-W47/period.parquet").content
    table = pq.read_table(BytesIO(sent)).to_pylist()
    assert [(row["group_name"], row["day_count_before"]) for row in table] == [("billing", 2), ("</script><b>", 0)]


def test_a_group_on_a_day_says_what_was_unusual_and_leads_to_the_group(
    http: Client, cluster: Cluster, report: DayReport
) -> None:
    GroupDay.objects.filter(group_name="billing").update(anomalies=[[14, "flood", 1600.0, 980.0]])
    page = text(http.get(f"/clusters/{cluster.name}/reports/2026-11-20/groups/billing/"))
    for words in (
        "billing was over its objective for 41 m 00 s on 2026-11-20",
        "14:00: 1,600 messages came in; 980 are usual",
        "shop.PaymentTimeout",
        f"/clusters/{cluster.name}/groups/billing/",
        "fewer than seven days are known",
    ):
        assert words in page
    day = text(http.get(f"/clusters/{cluster.name}/reports/2026-11-20/"))
    assert "Unusual in billing at 14:00: 1,600 messages came in; 980 are usual." in day
    assert http.get(f"/clusters/{cluster.name}/reports/2026-11-20/groups/nobody/").status_code == 404
