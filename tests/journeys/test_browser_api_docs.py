"""A browser on the description of the REST API: no inline script or style, and an operation tried out."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Site, chromium, log_in, page, site, standing_site  # noqa: F401 - fixtures

pytestmark = [pytest.mark.journey, pytest.mark.browser, pytest.mark.redis]


def test_the_description_is_browsed_and_tried_out_under_the_strict_policy(site: Site, page: Page) -> None:
    """The page must not log an error, and a refused script or style is one."""
    log_in(page)
    page.goto("/api/v1/docs")
    clusters = page.locator("#operations-clusters-list_clusters")
    page.locator("#operations-tag-clusters").click()
    clusters.locator(".opblock-summary-control").click()
    clusters.get_by_role("button", name="Try it out").click()
    clusters.get_by_role("button", name="Execute").click()
    expect(clusters.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    page.get_by_role("link", name="Back to the console").click()
    expect(page).to_have_url(f"{site.url}/")
