"""A browser on the pages of alerts: what fires reaches open pages, is acknowledged, and resolves."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Site, chromium, log_in, page, site, standing_site  # noqa: F401 - fixtures

pytestmark = [pytest.mark.journey, pytest.mark.browser, pytest.mark.redis]


@pytest.fixture
def shop(site: Site, page: Page) -> Page:
    site.carry_out("shop")
    log_in(page)
    return page


def mark(page: Page) -> None:
    """Something that a reload would wipe out, on a page that is live."""
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
    page.evaluate("window.notReloaded = true")


def assert_not_reloaded(page: Page) -> None:
    assert page.evaluate("window.notReloaded === true")


def test_an_alert_reaches_the_open_list_is_acknowledged_and_resolves(site: Site, shop: Page) -> None:
    shop.goto("/alerts/")
    expect(shop.get_by_role("heading", name="Nothing fires")).to_be_visible()
    mark(shop)
    site.carry_out("group_stalls", group="billing")
    expect(shop.get_by_role("heading", name="1 alert fires")).to_be_visible()
    row = shop.locator("#alerts-now tbody tr")
    expect(row.locator("[data-cell=state]")).to_have_text("FIRING")
    assert_not_reloaded(shop)

    shop.get_by_role("link", name="Acknowledge").click()
    shop.get_by_label("Note").fill("restarting it")
    shop.get_by_role("button", name="Preview").click()
    shop.get_by_role("button", name="Acknowledge an alert").click()
    expect(shop.get_by_text("DONE").first).to_be_visible()
    shop.goto("/alerts/")
    expect(shop.locator("#alerts-now [data-cell=state]")).to_have_text("ACKNOWLEDGED")
    expect(shop.get_by_text("admin: restarting it")).to_be_visible()

    mark(shop)
    site.carry_out("group_is_well", group="billing")
    expect(shop.get_by_role("heading", name="Nothing fires")).to_be_visible()
    assert_not_reloaded(shop)
    shop.goto("/alerts/history/")
    expect(shop.locator("#alerts-history [data-cell=state]").first).to_have_text("RESOLVED")
    shop.get_by_role("link", name="billing").first.click()
    expect(shop.locator(".group-lag")).to_be_visible()


def test_an_alert_reaches_the_open_overview_and_the_groups_page(site: Site, shop: Page) -> None:
    shop.goto("/clusters/local/groups/billing/")
    mark(shop)
    site.carry_out("group_stalls", group="billing")
    expect(shop.locator("[data-alert]")).to_contain_text("FIRING stalled")
    assert_not_reloaded(shop)
    shop.goto("/")
    expect(shop.locator("#attention")).to_contain_text("FIRING")


def test_a_channel_is_made_in_one_step_and_its_address_is_nowhere_again(site: Site, shop: Page) -> None:
    shop.goto("/alerts/channels/set/")
    shop.get_by_label("Name").fill("chat")
    shop.get_by_label("Kind").select_option("dingtalk")
    shop.get_by_role("button", name="Set a channel for alerts").click()
    expect(shop.get_by_text("Write the address to which it is posted.")).to_be_visible()
    shop.get_by_label("Address of the webhook").fill("https://oapi.example.com/robot/send?access_token=very-secret")
    shop.get_by_label("Secret of its signature").fill("SECvery-secret")
    shop.get_by_role("button", name="Set a channel for alerts").click()
    expect(shop.get_by_text("DONE").first).to_be_visible()
    assert "very-secret" not in shop.url + shop.content()
    for address in ("/alerts/channels/", "/alerts/channels/chat/change/", "/audit/", "/audit/1/"):
        shop.goto(address)
        assert "very-secret" not in shop.content(), address
    expect(shop.get_by_text("chat").first).to_be_visible()
