"""Mended in a browser, in English and in Chinese: typed, looked at as a difference, kept; and by a patch for many."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import PASSWORD, Site, chromium, open_context, site, standing_site  # noqa: F401 - fixtures

pytestmark = [pytest.mark.journey, pytest.mark.browser, pytest.mark.redis]


@dataclass(frozen=True, slots=True)
class Words:
    """What the pages call what is clicked, in one language."""

    locale: str
    name: str
    password: str
    log_in: str
    mend: str
    body: str
    show: str
    keep: str
    by: str
    patch: str
    show_patch: str
    changes: str
    refusal: str


ENGLISH = Words(
    locale="en",
    name="Name",
    password="Password",
    log_in="Log in",
    mend="Mend",
    body="Body",
    show="Show the difference",
    keep="Keep the mended copy",
    by="by admin",
    patch="JSON Patch",
    show_patch="Show what it does",
    changes="It changes 12 of 12",
    refusal="The body is JSON, and what was typed is not",
)
CHINESE = Words(
    locale="zh-CN",
    name="用户名",
    password="密码",
    log_in="登录",
    mend="修改",
    body="消息体",
    show="显示差异",
    keep="保存修改后的副本",
    by="由 admin",
    patch="JSON Patch",
    show_patch="显示效果",
    changes="将修改 12 条中的 12 条",
    refusal="消息体是 JSON，而输入的内容不是",
)


def open_console(chromium: Browser, site: Site, words: Words) -> Page:
    context = open_context(chromium, base_url=site.url, viewport={"width": 1440, "height": 900}, locale=words.locale)
    page = context.new_page()
    page.goto("/")
    page.get_by_label(words.name).fill("admin")
    page.get_by_label(words.password).fill(PASSWORD)
    page.get_by_role("button", name=words.log_in).click()
    page.wait_for_url(lambda url: "/login/" not in url)
    return page


@pytest.mark.parametrize("words", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_a_dead_letter_is_mended_and_a_whole_failure_is_patched(chromium: Browser, site: Site, words: Words) -> None:
    site.carry_out("empty_cluster")
    site.carry_out("shop")
    page = open_console(chromium, site, words)
    page.goto("/clusters/local/deadletters/1/")
    page.get_by_role("link", name=words.mend, exact=True).click()
    body = page.get_by_label(words.body, exact=True)
    expect(body).to_have_value('{\n  "id": 0\n}')
    body.fill('{\n  "id": "zero",\n}')
    page.get_by_role("button", name=words.show).click()
    expect(page.get_by_role("alert")).to_contain_text(words.refusal)
    expect(body).to_have_value('{\n  "id": "zero",\n}')
    body.fill('{\n  "id": "zero"\n}')
    page.get_by_role("button", name=words.show).click()
    expect(page.locator("[data-part=body-diff] ins")).to_have_text('+   "id": "zero"')
    expect(page.locator("[data-part=body-diff] del")).to_have_text('-   "id": 0')
    page.get_by_role("button", name=words.keep).click()
    expect(page.locator("#run .page-head .status")).to_be_visible()
    page.goto("/clusters/local/deadletters/1/")
    expect(page.locator("#mended")).to_contain_text(words.by)
    expect(page.locator("#mended ins")).to_have_text('+   "id": "zero"')

    page.goto("/clusters/local/deadletters/failures/2/patch/")
    page.get_by_label(words.patch).fill('[{"op": "replace", "path": "/id", "value": 17}]')
    page.get_by_role("button", name=words.show_patch).click()
    expect(page.locator("#preview-head")).to_have_text(words.changes)
    expect(page.locator("[data-part=body-diff] ins").first).to_have_text('+   "id": 17')
