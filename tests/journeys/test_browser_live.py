"""A browser on the console: log in, open a group, and watch what changes arrive without a reload."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, WebSocketRoute, expect

from tests.support.browser import Site, chromium, log_in, page, site, standing_site  # noqa: F401 - fixtures
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.browser, pytest.mark.redis]

LOOK_EVERY_MS = 20
# From a region's arrival until a page shows it, unless something holds it up.
SHOWN_WITHIN_MS = 300
TEN_SECONDS_ARE_TEN_MINUTES = """
    const set = window.setTimeout
    window.setTimeout = (act, ms, ...more) => set(act, ms === 10000 ? 600000 : ms, ...more)
"""


def mark(page: Page) -> None:
    """Something that a reload would wipe out."""
    page.evaluate("window.notReloaded = true")


def assert_not_reloaded(page: Page) -> None:
    assert page.evaluate("window.notReloaded === true")


def is_live(page: Page) -> None:
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")


def note_live_states(page: Page) -> None:
    """In `liveStates`, all of them from now on: one may be over before anybody looks."""
    page.evaluate("""() => {
        window.liveStates = [];
        const indicator = document.getElementById("live-state");
        const note = () => window.liveStates.push(indicator.dataset.state);
        new MutationObserver(note).observe(indicator, { attributeFilter: ["data-state"] });
    }""")


def names(table: Locator) -> list[str]:
    return table.locator("tbody tr").evaluate_all("rows => rows.map((row) => row.dataset.row)")


@pytest.fixture
def shop(site: Site, page: Page) -> Page:
    """Logged in, on the overview of a shop with two groups."""
    site.carry_out("shop")
    log_in(page)
    return page


def test_from_an_empty_install_to_the_first_group(site: Site, page: Page) -> None:
    site.carry_out("empty_cluster")
    log_in(page)
    expect(page.get_by_role("heading", name="local is ready for its first message")).to_be_visible()
    is_live(page)
    mark(page)
    site.carry_out("shop")
    expect(page.get_by_text("2 consumer groups; none needs attention.")).to_be_visible()
    expect(page.get_by_role("heading", name="Nothing needs attention")).to_be_visible()
    assert_not_reloaded(page)


def test_lag_and_a_rebalance_arrive_on_the_open_page_of_a_group(site: Site, shop: Page) -> None:
    shop.get_by_role("link", name="local", exact=True).first.click()
    shop.get_by_role("link", name="Groups", exact=True).click()
    shop.get_by_role("link", name="billing").click()
    is_live(shop)
    mark(shop)

    site.carry_out("lag_becomes", group="billing", lag=4_811, verdict="slow")
    expect(shop.locator("#figures [data-cell=lag]")).to_have_text("4,811")
    expect(shop.locator("tr[data-row='orders/broker-a/0'] [data-cell=lag]")).to_have_text("4,811")
    expect(shop.locator("tr[data-row='orders/broker-a/0'] [data-cell=lag]")).to_have_class(re.compile("flash"))
    expect(shop.locator("tr[data-row='orders/broker-a/1'] [data-cell=lag]")).not_to_have_class(re.compile("flash"))
    expect(shop.locator(".page-head .status")).to_have_text("SLOW")

    site.carry_out("member_joins", group="billing", client_id="10.0.3.9@8812")
    expect(shop.locator("tr[data-row='orders/broker-a/3'] [data-cell=owner]")).to_have_text("10.0.3.9@8812")
    expect(shop.locator("#figures [data-cell=members]")).to_have_text("3")
    assert_not_reloaded(shop)


def test_a_rebalance_appears_on_the_open_timeline(site: Site, shop: Page) -> None:
    shop.goto("/clusters/local/rebalances/")
    is_live(shop)
    mark(shop)
    site.carry_out("member_joins", group="billing", client_id="10.0.3.9@8812")
    expect(shop.get_by_text("10.0.3.9@8812 joined, 3 members after that")).to_be_visible()
    expect(shop.get_by_text("1 queue moved in billing")).to_be_visible()
    assert_not_reloaded(shop)


def test_what_is_being_typed_survives_what_arrives(site: Site, shop: Page) -> None:
    site.carry_out("hosted", group="billing", wanted=2)
    shop.goto("/clusters/local/groups/billing/")
    is_live(shop)
    wanted = shop.get_by_label("Instances wanted")
    wanted.fill("4")
    site.carry_out("lag_becomes", group="billing", lag=31)
    expect(shop.locator("#figures [data-cell=lag]")).to_have_text("31")
    expect(wanted).to_have_value("4")
    expect(wanted).to_be_focused()
    shop.get_by_role("button", name="Set").click()
    expect(shop.get_by_text("billing is set to 4 instances.")).to_be_visible()
    expect(shop.get_by_text("0 of 4 instances are running.")).to_be_visible()


@pytest.fixture
def brought(site: Site, shop: Page) -> Callable[[], None]:
    """On the page of a group that workers host; what it returns waits until the socket has brought a changed region."""
    frames: list[str | bytes] = []
    # A busy machine may be slower than the ten seconds after which a press and a request count as given up.
    shop.add_init_script(TEN_SECONDS_ARE_TEN_MINUTES)
    shop.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(frame)))
    site.carry_out("hosted", group="billing", wanted=2)
    shop.goto("/clusters/local/groups/billing/")
    is_live(shop)
    shop.evaluate("htmx.config.timeout = 0")

    def has_brought() -> bool:
        shop.wait_for_timeout(LOOK_EVERY_MS)
        return any(isinstance(frame, bytes) for frame in frames)

    def bring() -> None:
        frames.clear()
        site.carry_out("lag_becomes", group="billing", lag=31)
        wait_until(has_brought, what="a region")
        shop.wait_for_timeout(SHOWN_WITHIN_MS)

    return bring


@pytest.mark.parametrize("target", [("button", "Set"), ("link", "Stop them")], ids=["button", "link"])
def test_a_click_counts_though_a_region_comes_between_press_and_release(
    shop: Page, brought: Callable[[], None], target: tuple[Any, str]
) -> None:
    role, name = target
    shop.get_by_role(role, name=name).hover()
    shop.mouse.down()
    brought()
    with shop.expect_navigation():
        shop.mouse.up()


def test_the_space_bar_counts_though_a_region_comes_before_it_is_released(
    shop: Page, brought: Callable[[], None]
) -> None:
    shop.get_by_role("button", name="Set").focus()
    shop.keyboard.down(" ")
    brought()
    with shop.expect_navigation():
        shop.keyboard.up(" ")


def test_what_came_while_something_was_pressed_is_shown_when_it_is_released(
    shop: Page, brought: Callable[[], None]
) -> None:
    lag = shop.locator("#figures [data-cell=lag]")
    shop.locator("#figures").hover()
    shop.mouse.down()
    brought()
    assert lag.inner_text() != "31"
    shop.mouse.up()
    expect(lag).to_have_text("31")


def test_an_older_region_that_is_fetched_does_not_replace_what_was_pushed(
    shop: Page, brought: Callable[[], None]
) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        if "hx-request" in route.request.headers:
            held.append(route)
        else:
            route.continue_()

    def is_asked_for() -> bool:
        shop.wait_for_timeout(LOOK_EVERY_MS)
        return bool(held)

    shop.route("**/groups/billing/", hold)
    shop.evaluate("void document.body.dispatchEvent(new CustomEvent('live'))")
    wait_until(is_asked_for, what="the request for a region")
    older = held[0].fetch()
    brought()
    lag = shop.locator("#figures [data-cell=lag]")
    expect(lag).to_have_text("31")
    held[0].fulfill(response=older)
    shop.wait_for_timeout(SHOWN_WITHIN_MS)
    assert lag.inner_text() == "31"
    expect(shop.get_by_role("button", name="Set")).to_be_visible()


def test_rows_do_not_move_under_the_pointer(site: Site, shop: Page) -> None:
    shop.goto("/clusters/local/groups/?sort=-lag")
    table = shop.locator("#groups")
    is_live(shop)
    assert names(table) == ["orders-index", "billing"]
    table.locator("tbody tr").first.hover()
    site.carry_out("lag_becomes", group="billing", lag=9_000)
    pill = shop.get_by_role("button", name="Order changed, 2 rows")
    expect(pill).to_be_visible()
    assert names(table) == ["orders-index", "billing"]
    pill.click()
    assert names(table) == ["billing", "orders-index"]
    expect(pill).to_have_count(0)


def test_rows_move_when_nobody_points_at_them(site: Site, shop: Page) -> None:
    shop.goto("/clusters/local/groups/?sort=-lag")
    is_live(shop)
    shop.mouse.move(5, 5)
    site.carry_out("lag_becomes", group="billing", lag=9_000)
    expect(shop.locator("#groups tbody tr").first).to_have_attribute("data-row", "billing")


def test_a_list_that_changes_keeps_scroll_position_focus_and_selected_text(site: Site, shop: Page) -> None:
    site.carry_out("groups", count=40)
    shop.goto("/clusters/local/groups/?sort=name")
    is_live(shop)
    mark(shop)
    shop.mouse.move(5, 5)
    link = shop.locator("#groups tr[data-row=shop-30] a.row-link")
    link.scroll_into_view_if_needed()
    link.focus()
    shop.locator("#groups tr[data-row=shop-29] a.row-link").evaluate("(link) => getSelection().selectAllChildren(link)")
    scrolled, order = shop.evaluate("scrollY"), names(shop.locator("#groups"))
    assert scrolled > 0
    for lag in ("4811", "4812"):
        site.carry_out("lag_becomes", group="billing", lag=int(lag))
        expect(shop.locator("#groups tr[data-row=billing] [data-cell=lag]")).to_have_text(f"4,{lag[1:]}")
        assert shop.evaluate("scrollY") == scrolled
        expect(link).to_be_focused()
        assert shop.evaluate("getSelection().toString().trim()") == "shop-29"
        assert names(shop.locator("#groups")) == order
    assert_not_reloaded(shop)


def test_a_page_says_that_it_is_disconnected_and_catches_up(site: Site, shop: Page) -> None:
    shop.goto("/clusters/local/groups/billing/")
    is_live(shop)
    mark(shop)
    note_live_states(shop)
    site.stop_web()
    wait_until(lambda: "reconnecting" in shop.evaluate("window.liveStates"), what="the page that reconnects")
    expect(shop.locator("#live-state")).to_have_text(re.compile(r"disconnected since \d\d:\d\d:\d\d"))
    site.carry_out("lag_becomes", group="billing", lag=77)
    site.start_web()
    expect(shop.locator("#live-state")).to_have_attribute("data-state", "live")
    expect(shop.locator("#figures [data-cell=lag]")).to_have_text("77")
    assert_not_reloaded(shop)


def test_a_session_that_ended_leads_to_the_log_in(site: Site, shop: Page) -> None:
    shop.goto("/clusters/local/groups/billing/")
    is_live(shop)
    site.carry_out("log_ins_end")
    expect(shop.get_by_role("heading", name="Log in")).to_be_visible()


def test_what_changes_is_brought_by_the_socket_and_fetched_only_after_a_gap(site: Site, shop: Page) -> None:
    fetched: list[str] = []
    shop.on("request", lambda request: fetched.append(request.url) if "hx-request" in request.headers else None)
    shop.goto("/clusters/local/groups/billing/")
    is_live(shop)
    for lag in (31, 32, 33):
        site.carry_out("lag_becomes", group="billing", lag=lag)
        expect(shop.locator("#figures [data-cell=lag]")).to_have_text(str(lag))
    assert fetched == []
    site.stop_web()
    expect(shop.locator("#live-state")).to_have_attribute("data-state", re.compile("^(reconnecting|disconnected)$"))
    with shop.expect_response(lambda answer: "hx-request" in answer.request.headers):
        site.start_web()
    is_live(shop)
    fetched.clear()
    site.carry_out("lag_becomes", group="billing", lag=34)
    expect(shop.locator("#figures [data-cell=lag]")).to_have_text("34")
    assert fetched == []


def test_a_pushed_region_that_cannot_be_unpacked_is_fetched_and_the_page_hears_on(site: Site, shop: Page) -> None:
    fetched: list[str] = []
    broken: list[bytes] = []

    def break_the_first_region(page_socket: WebSocketRoute) -> None:
        def pass_on(frame: str | bytes) -> None:
            if isinstance(frame, bytes) and not broken:
                broken.append(frame)
                frame = frame[: len(frame) // 2]
            page_socket.send(frame)

        page_socket.connect_to_server().on_message(pass_on)

    shop.on("request", lambda request: fetched.append(request.url) if "hx-request" in request.headers else None)
    shop.route_web_socket(re.compile("/ws/$"), break_the_first_region)
    shop.goto("/clusters/local/groups/billing/")
    is_live(shop)
    mark(shop)
    site.carry_out("lag_becomes", group="billing", lag=31)
    expect(shop.locator("#figures [data-cell=lag]")).to_have_text("31")
    assert len(broken) == 1
    assert len(fetched) == 1
    site.carry_out("lag_becomes", group="billing", lag=32)
    expect(shop.locator("#figures [data-cell=lag]")).to_have_text("32")
    assert len(fetched) == 1, "pushed again"
    assert_not_reloaded(shop)


def test_the_keyboard_reaches_the_page_past_the_navigation(shop: Page) -> None:
    shop.goto("/clusters/local/groups/")
    shop.keyboard.press("Tab")
    expect(shop.get_by_role("link", name="Skip to the page")).to_be_focused()
    shop.keyboard.press("Enter")
    expect(shop.locator("#page")).to_be_focused()


def test_the_overview_of_many_clusters_is_kept_fresh_through_one_socket(site: Site, shop: Page) -> None:
    site.carry_out("clusters", count=9)
    # The page after the log-in has a socket, too: not one that opens only while the next page is counted.
    is_live(shop)
    sockets: list[str] = []
    shop.on("websocket", lambda socket: sockets.append(socket.url))
    shop.goto("/")
    is_live(shop)
    mark(shop)
    site.carry_out("cluster_falls_silent", name="c8")
    expect(shop.locator("#clusters [data-row=c8] [data-cell=brokers]")).to_contain_text("UNREACHABLE")
    assert len(sockets) == 1
    assert_not_reloaded(shop)


BILLING = "/clusters/local/groups/billing/"
ADDRESSES = (
    "/",
    "/clusters/local/",
    "/clusters/local/topics/",
    "/clusters/local/topics/orders/",
    "/clusters/local/groups/",
    BILLING,
    f"{BILLING}members/",
    f"{BILLING}subscriptions/",
    f"{BILLING}rebalances/",
)
# Boxes whose text shows outside of them, over whatever stands there.
OVERRUNNING = """() => [...document.querySelectorAll("th, td, .attention > li > *, .figure, .breadcrumbs li")]
    .filter((box) => box.clientWidth > 1 && getComputedStyle(box).overflowX === "visible")
    .filter((box) => box.scrollWidth > box.clientWidth + 1)
    .map((box) => box.textContent.trim())"""


@pytest.fixture
def phone(shop: Page) -> Page:
    shop.set_viewport_size({"width": 390, "height": 844})
    return shop


def test_a_phone_folds_the_navigation_and_nothing_overflows(phone: Page) -> None:
    for address in ADDRESSES:
        phone.goto(address)
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
    expect(phone.locator("#sidebar")).to_be_hidden()
    phone.get_by_role("button", name="Navigation").click()
    phone.locator("#sidebar").get_by_role("link", name="Topics").click()
    expect(phone.get_by_role("heading", level=1)).to_have_text("Topics in local")


def test_on_a_phone_no_text_runs_into_its_neighbour(site: Site, phone: Page) -> None:
    site.carry_out("clusters", count=1)
    site.carry_out("cluster_falls_silent", name="c0")
    for address in ADDRESSES:
        phone.goto(address)
        assert phone.evaluate(OVERRUNNING) == [], address


def test_on_a_phone_a_table_and_tabs_that_go_on_say_so_and_scroll_by_keyboard(site: Site, phone: Page) -> None:
    phone.goto(BILLING)
    tabs, table = phone.locator(".tabs"), phone.locator(".table-scroll:has(#queues)")
    expect(tabs).to_have_attribute("data-more", "right")
    expect(table).to_have_attribute("data-more", "right")
    is_live(phone)
    site.carry_out("lag_becomes", group="billing", lag=31)
    expect(phone.locator("#figures [data-cell=lag]")).to_have_text("31")
    expect(table).to_have_attribute("data-more", "right")
    table.focus()
    for _ in range(30):
        phone.keyboard.press("ArrowRight")
    expect(table).to_have_attribute("data-more", re.compile("left"))
    phone.goto(f"{BILLING}settings/")
    expect(tabs.locator("[aria-current]")).to_be_in_viewport(ratio=0.95)
    expect(tabs).to_have_attribute("data-more", "left")
    phone.goto(BILLING)
    phone.set_viewport_size({"width": 1440, "height": 900})
    expect(table).not_to_have_attribute("data-more", re.compile(".*"))
    expect(table).not_to_have_attribute("tabindex", "0")


def test_the_theme_is_chosen_and_kept(shop: Page) -> None:
    shop.get_by_role("button", name=re.compile("^admin")).click()
    shop.get_by_role("button", name="Dark").click()
    expect(shop.locator("html")).to_have_attribute("data-theme", "dark")
    expect(shop.locator("body")).to_have_css("background-color", "rgb(16, 18, 22)")
    dark = shop.evaluate("getComputedStyle(document.body).backgroundColor")
    shop.goto("/clusters/local/")
    assert shop.evaluate("getComputedStyle(document.body).backgroundColor") == dark == "rgb(16, 18, 22)"
