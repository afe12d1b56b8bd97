"""A browser that asks for Chinese: no English is left on pages, all of it fits, and the choice goes with the person.

What a report becomes as a picture and on paper is seen on the same walk, which has it in both themes.
"""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import PASSWORD, Site, chromium, open_context, site, standing_site  # noqa: F401 - fixtures
from tests.support.console_pages import ASKING, NO_PAGE, PAGES

pytestmark = [pytest.mark.journey, pytest.mark.browser, pytest.mark.redis]

REPORT = "/clusters/local/reports/2026-11-20/"
# What a reader sees or hears: texts and attributes, without code and without what people typed.
SHOWN = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent && !parent.closest("code, pre, script, style, [lang=en]")) found.push(walker.currentNode.data.trim());
  }
  for (const one of document.querySelectorAll("[title], [aria-label], [placeholder]"))
    found.push(one.title, one.ariaLabel, one.placeholder);
  return [document.title, ...found].filter(Boolean);
}"""
ENGLISH = re.compile(r"\b[a-z]{2,} [a-z]{2,}\b")
# Examples and commands stand inside sentences.
COMMANDS = re.compile(r"manage\.py \w+|celery -A mqadmin worker -Q scheduler -c 1")


def open_page(chromium: Browser, site: Site, *, width: int, theme: str, locale: str = "zh-CN") -> Page:
    context = open_context(
        chromium, base_url=site.url, viewport={"width": width, "height": 900}, locale=locale, color_scheme=theme
    )
    page = context.new_page()
    page.goto("/")
    return page


def log_in(page: Page, name: str, password: str, button: str) -> None:
    page.get_by_label(name).fill("admin")
    page.get_by_label(password).fill(PASSWORD)
    page.get_by_role("button", name=button).click()
    page.wait_for_url(lambda url: "/login/" not in url)


def english_on(page: Page) -> list[str]:
    return [text for text in page.evaluate(SHOWN) if ENGLISH.search(COMMANDS.sub("", text))]


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_every_page_is_chinese_and_fits(chromium: Browser, site: Site, width: int, theme: str) -> None:
    site.carry_out("empty_cluster")
    site.carry_out("shop")
    site.carry_out("failure_raised")
    site.carry_out("rebalanced", group="billing")
    site.carry_out("lag_becomes", group="billing", lag=4_811, verdict="stalled")
    site.carry_out("member_joins", group="billing", client_id="10.0.3.9@8812")
    page = open_page(chromium, site, width=width, theme=theme)
    assert english_on(page) == []
    log_in(page, "用户名", "密码", "登录")
    for address in (*PAGES, *(f"/clusters/local/{path}" for path in ASKING), NO_PAGE):
        page.goto(address)
        assert page.locator("html").get_attribute("lang") == "zh-hans", address
        assert english_on(page) == [], address
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], f"{address} is wider than the window"
    page.goto(REPORT)
    assert_figure_is_saved(page, theme)
    assert_report_is_printed(page)
    page.context.close()


def assert_figure_is_saved(page: Page, theme: str) -> None:
    """As a PNG of one width on every device, on the ground of the theme."""
    expect(page.locator("#chart-lag .main-svg").first).to_be_visible()
    with page.expect_download() as saved:
        page.locator("[data-png=lag]").click()
    assert saved.value.suggested_filename == "lag.png"
    width, height, ground = read_png(Path(saved.value.path()))
    assert (width, 186 <= height <= 900) == (1200, True)
    assert min(ground) > 200 if theme == "light" else max(ground) < 60, ground


def assert_report_is_printed(page: Page) -> None:
    """Light, with the figures that are drawn and in the table, and without what can only be clicked."""
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    table = page.locator("#groups tr[data-row=billing]")
    assert "41" in table.inner_text(), "minutes over the objective"
    assert "billing" in page.locator("#chart-lag svg text").all_text_contents()
    for clicked in ("button", "summary", ".sidebar"):
        assert not any(one.is_visible() for one in page.locator(clicked).all()), clicked
    written = page.pdf(format="A4")
    assert written.startswith(b"%PDF-")
    assert 1 <= len(re.findall(rb"/Type /Page\b", written)) <= 4


def read_png(path: Path) -> tuple[int, int, tuple[int, ...]]:
    """Returns width, height and the colour of the first pixel, which no filter of a row changes."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack_from(">II", data, 16)
    place, packed = 8, b""
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        if data[place + 4 : place + 8] == b"IDAT":
            packed += data[place + 8 : place + 8 + length]
        place += 12 + length
    return width, height, tuple(zlib.decompress(packed)[1:4])


def test_ages_go_on_in_chinese_and_so_does_the_live_region(chromium: Browser, site: Site) -> None:
    site.carry_out("shop")
    page = open_page(chromium, site, width=1280, theme="light")
    log_in(page, "用户名", "密码", "登录")
    page.goto("/clusters/local/groups/billing/")
    expect(page.locator("#live-state")).to_contain_text("实时")
    site.carry_out("lag_becomes", group="billing", lag=4_811, verdict="slow")
    expect(page.locator(".page-head .status")).to_have_text("缓慢")
    expect(page.locator("#figures time.age")).to_have_text(re.compile(r"^(刚刚|\d+ (秒|分钟)前)$"))
    expect(page.locator("#figures time.age")).to_have_text(re.compile(r"^\d+ (秒|分钟)前$"))
    page.context.close()


def test_the_choice_goes_with_the_person(chromium: Browser, site: Site) -> None:
    site.carry_out("shop")
    here = open_page(chromium, site, width=1280, theme="light", locale="en-GB")
    log_in(here, "Name", "Password", "Log in")
    here.goto("/clusters/local/topics/?sort=-in")
    here.get_by_role("button", name="admin").click()
    here.get_by_role("button", name="简体中文").click()
    expect(here).to_have_url(f"{site.url}/clusters/local/topics/?sort=-in")
    expect(here.get_by_role("heading", level=1)).to_have_text("local 的主题")
    elsewhere = open_page(chromium, site, width=390, theme="dark", locale="en-GB")
    log_in(elsewhere, "Name", "Password", "Log in")
    expect(elsewhere.locator("html")).to_have_attribute("lang", "zh-hans")
    elsewhere.context.close()
    # The log-in page remembers what was chosen in this browser.
    here.get_by_role("button", name="admin").click()
    here.get_by_role("button", name="退出登录", exact=True).click()
    expect(here.get_by_role("heading", name="登录")).to_be_visible()
    here.context.close()
