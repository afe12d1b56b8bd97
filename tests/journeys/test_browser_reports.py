"""What the pages of reports draw of days that were recorded: Spark makes the reports, a browser draws their figures.

Each figure is held against REST and against its table, on a wide screen in light and on a phone in dark colours.
"""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Page, expect

from bench.lag_samples import CLUSTER
from mqadmin.reports.periods import month_of, week_of
from tests.support.browser import PASSWORD, Site, chromium, log_in, open_context, standing_site  # noqa: F401 - fixtures
from tests.support.recorded_days import DYING, GROUPS, HOT, compute_days, write_days

if TYPE_CHECKING:
    from playwright.sync_api import StorageState
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.journey,
    pytest.mark.browser,
    pytest.mark.redis,
    pytest.mark.spark,
    pytest.mark.timeout(1800),
]

LOOKS = pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")], ids=["wide-light", "phone-dark"])
REPORTS = f"/clusters/{CLUSTER}/reports/"
# What Plotly has drawn of a chart: its values, and how many shapes are there to be seen.
DRAWN = """key => {
  const place = document.querySelector(`[data-chart="${key}"]`);
  const shapes = ".barlayer .point path, .heatmaplayer image, .funnellayer .point path, "
    + ".scatterlayer .js-line, .scatterlayer .point";
  const wide = place.querySelector(".main-svg").getBoundingClientRect().width;
  return {
    traces: place.data.map(({ type, name, x, y, z, customdata }) => ({ type, name, x, y, z, customdata })),
    shapes: [...place.querySelectorAll(shapes)].filter(one => one.getBoundingClientRect().width > 0).length,
    fits: wide > 0 && wide <= document.documentElement.clientWidth,
  };
}"""
# The texts of a chart's table, row by row.
TABLE = """key => [...document.querySelectorAll(`#chart-${key} tbody tr`)].map(
  row => [...row.cells].map(cell => cell.textContent.trim())
)"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A site with the reports of yesterday and of the same weekday before, and what keeps a browser logged in."""

    site: Site
    day: date
    cookies: StorageState


@pytest.fixture(scope="module")
def recorded(spark: SparkSession, standing_site: Site, chromium: Browser) -> Recorded:
    day = datetime.now(UTC).date() - timedelta(days=1)
    days = (day - timedelta(days=7), day)
    standing_site.begin_anew()
    standing_site.carry_out("admin", password=PASSWORD)
    standing_site.carry_out("cluster_with_history", name=CLUSTER, groups=GROUPS)
    write_days(standing_site.folder, days)
    folders = compute_days(spark, standing_site.folder, days)
    standing_site.carry_out("reports_kept", name=CLUSTER, folders=folders)
    context = open_context(chromium, base_url=standing_site.url)
    page = context.new_page()
    page.goto("/")
    log_in(page)
    cookies = context.storage_state()
    context.close()
    return Recorded(standing_site, day, cookies)


@pytest.fixture
def page(chromium: Browser, recorded: Recorded, width: int, theme: Any) -> Iterator[Page]:
    """A page that must not log an error, logged in."""
    errors: list[str] = []
    context = open_context(
        chromium,
        base_url=recorded.site.url,
        viewport={"width": width, "height": 900},
        color_scheme=theme,
        storage_state=recorded.cookies,
    )
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert not errors


def told(page: Page, address: str) -> dict[str, dict[str, Any]]:
    """Returns what REST tells of groups, by their names."""
    items = page.request.get(f"/api/v1/clusters/{CLUSTER}/reports/{address}?limit=100").json()["items"]
    return {one["group"]: one for one in items}


def open_page(page: Page, address: str) -> None:
    """Opens a page, which must fit its window and have all of its charts drawn."""
    response = page.goto(REPORTS + address)
    assert response is not None
    assert response.status == 200, address
    places = page.locator("[data-chart]")
    for number in range(places.count()):
        expect(places.nth(number).locator(".main-svg").first).to_be_visible()
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], f"{address} is wider than the window"


def traces(page: Page, key: str) -> list[dict[str, Any]]:
    """Returns the values that are drawn of a chart, of which there is something to see."""
    drawn = page.evaluate(DRAWN, key)
    assert drawn["shapes"], f"nothing of {key} can be seen"
    assert drawn["fits"], f"{key} is wider than the window"
    found: list[dict[str, Any]] = drawn["traces"]
    return found


def bars(page: Page, key: str) -> dict[str, dict[str, Any]]:
    """Returns of lying bars those of each group, by their names."""
    found: dict[str, dict[str, Any]] = {}
    for one in traces(page, key):
        assert one["type"] == "bar"
        for group, value in zip(one["customdata"], one["x"], strict=True):
            found.setdefault(group, {})[one["name"]] = value
    return found


def numbers(texts: list[str]) -> list[float | None]:
    """Reads the figures of a row."""
    return [None if text == "–" else float(text.replace(",", "")) for text in texts]


def assert_table(page: Page, key: str, rows: dict[str, list[float | None]]) -> None:
    """The table of a chart, which can be opened, has these figures and no others."""
    summary = page.locator(f"#chart-{key} summary")
    summary.click()
    expect(page.locator(f"#chart-{key} table")).to_be_visible()
    assert {first: numbers(rest) for first, *rest in page.evaluate(TABLE, key)} == rows, key
    summary.click()


def by_group(found: dict[str, dict[str, Any]]) -> dict[str, list[float | None]]:
    return {group: list(values.values()) for group, values in found.items()}


def minutes(one: dict[str, Any]) -> list[float | None]:
    """Returns the minutes over its objective of a group of a day, hour by hour."""
    known = {hour["hour"]: round(hour["over_s"] / 60, 1) for hour in one["hours"] if hour["known_s"]}
    return [known.get(hour) for hour in range(24)]


@LOOKS
def test_a_day_draws_its_heat_map_growth_skew_and_retries_and_leads_to_the_group_at_that_time(
    page: Page, recorded: Recorded
) -> None:
    day = str(recorded.day)
    figures = told(page, day)
    assert set(figures) == set(GROUPS)
    open_page(page, f"{day}/")

    (heat,) = traces(page, "hours")
    assert heat["type"] == "heatmap"
    drawn = {row[0]: values for row, values in zip(heat["customdata"], heat["z"], strict=True)}
    assert drawn == {name: minutes(one) for name, one in figures.items() if one["over_s"]}
    assert HOT in drawn
    assert_table(page, "hours", drawn)

    grown = bars(page, "growth")
    assert len(grown) == 12
    for group, values in grown.items():
        expected = [figures[group]["produced_before"], figures[group]["produced"]]
        assert list(values.values()) == expected, group
    assert_table(page, "growth", by_group(grown))

    skewed = bars(page, "skew")
    assert skewed == {name: {"times an even queue": one["skew"]} for name, one in figures.items() if one["skew"]}
    assert skewed[HOT] == {"times an even queue": 4}
    assert_table(page, "skew", by_group(skewed))

    assert_funnel(page, list(figures.values()))
    assert figures[DYING]["dead"] > 0

    assert_leads_to_the_group(page, recorded, figures[HOT])


def assert_funnel(page: Page, items: list[dict[str, Any]]) -> None:
    (funnel,) = traces(page, "funnel")
    sums = [sum(one[name] for one in items) for name in ("consumed", "retried", "dead")]
    assert (funnel["type"], funnel["x"], funnel["customdata"]) == ("funnel", sums, ["consumed", "retried", "dead"])
    assert all(sums)
    page.locator("#chart-funnel summary").click()
    rows = page.evaluate(TABLE, "funnel")
    shares = [f"{100 * value / sums[0]:.3g} %" for value in sums]
    assert rows == [[name, str(n), share] for name, n, share in zip(funnel["customdata"], sums, shares, strict=True)]
    page.locator("#chart-funnel summary").click()


def assert_leads_to_the_group(page: Page, recorded: Recorded, one: dict[str, Any]) -> None:
    """From the row of a day to the group on that day, and from there to its curves at its worst hour."""
    page.locator(f"#groups tr[data-row={one['group']}] a").click()
    expect(page).to_have_url(re.compile(f"/reports/{recorded.day}/groups/{one['group']}/$"))
    page.get_by_role("link", name=f"Its curves at {one['worst_hour']}:00", exact=True).click()
    expect(page).to_have_url(re.compile(f"/groups/{one['group']}/lag/"))
    end = datetime(recorded.day.year, recorded.day.month, recorded.day.day) + timedelta(hours=one["worst_hour"] + 1)
    since = end - timedelta(hours=1)
    expect(page.locator(".group-lag .note")).to_contain_text(f"From {since} to {end} (UTC)")


@LOOKS
def test_a_group_on_a_day_draws_its_hours(page: Page, recorded: Recorded) -> None:
    one = told(page, str(recorded.day))[DYING]
    open_page(page, f"{recorded.day}/groups/{DYING}/")
    hours = [f"{hour}:00" for hour in range(24)]
    of_hour = {hour["hour"]: hour for hour in one["hours"] if hour["known_s"]}
    assert len(of_hour) == 24
    _band, high, median, most = traces(page, "lag")
    names = ("lag_p50", "lag_p95", "lag_max")
    ribbon = [[of_hour[hour][name] for name in names] for hour in range(24)]
    assert [list(values) for values in zip(median["y"], high["y"], most["y"], strict=True)] == ribbon
    assert_table(page, "lag", dict(zip(hours, ribbon, strict=True)))
    (over,) = traces(page, "over")
    assert over["y"] == minutes(one)
    assert_table(page, "over", {hour: [value] for hour, value in zip(hours, over["y"], strict=True)})
    assert_funnel(page, [one])


@LOOKS
def test_a_week_and_a_month_draw_their_days_beside_the_period_before(page: Page, recorded: Recorded) -> None:
    for period in (week_of(recorded.day), month_of(recorded.day)):
        figures = told(page, f"periods/{period.key}")
        open_page(page, f"{period.key}/")
        days = [f"{day:%m-%d}" for day in period.days]
        place = days.index(f"{recorded.day:%m-%d}")
        items = told(page, str(recorded.day))
        (heat,) = traces(page, "days")
        assert heat["x"] == days
        over = {row[0]: values for row, values in zip(heat["customdata"], heat["z"], strict=True)}
        assert set(over) == {name for name, one in figures.items() if one["over_s"]}
        assert {name: row[place] for name, row in over.items()} == {
            name: round(items[name]["over_s"] / 60) for name in over
        }
        assert_table(page, "days", over)

        worst = max(figures.values(), key=lambda one: (one["over_s"], one["lag_p95"]))["group"]
        assert worst in page.locator("#chart-ribbon0 figcaption").inner_text()
        _band, high, median, most = traces(page, "ribbon0")
        row = [items[worst][name] for name in ("lag_p50", "lag_p95", "lag_max")]
        assert [median["y"][place], high["y"][place], most["y"][place]] == row
        edges = zip(median["y"], high["y"], most["y"], strict=True)
        assert_table(page, "ribbon0", {day: list(values) for day, values in zip(days, edges, strict=True)})

        came = {trace["name"]: trace["y"] for trace in traces(page, "produced")}
        assert came["this period"][place] == sum(one["produced"] for one in items.values())
        assert_table(
            page,
            "produced",
            {day: list(pair) for day, pair in zip(days, zip(*came.values(), strict=True), strict=True)},
        )
        assert_funnel(page, list(figures.values()))
        page.locator(f"#groups tr[data-row={HOT}] a").click()
        expect(page).to_have_url(re.compile(rf"/reports/\d{{4}}-\d\d-\d\d/groups/{HOT}/$"))
