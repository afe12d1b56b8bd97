"""No page breaks a rule of axe, in both themes and at both widths; and the keyboard alone does what a mouse does."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from playwright.sync_api import Locator, Page, expect

from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import ProducerInfo, ProducerTable, SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode
from remoting.wire.java_properties import write_properties
from tests.support.browser import PASSWORD, Site, chromium, log_in, page, site, standing_site  # noqa: F401 - fixtures
from tests.support.console_pages import ASKING, NO_PAGE, PAGES
from tests.support.group_brokers import GroupBrokers

pytestmark = [pytest.mark.journey, pytest.mark.browser, pytest.mark.redis, pytest.mark.timeout(1800)]

VIOLATIONS = {"resultTypes": ["violations"]}
# Another theme is other colours, and so of interest to the rules about them.
OF_COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
THEMES: dict[Any, dict[str, Any]] = {"light": VIOLATIONS, "dark": {**VIOLATIONS, "runOnly": OF_COLOURS}}
WIDTHS = (1280, 390)
# A new width is seen by observers, which run before the next frame is drawn; after the second they have.
DRAWN = "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
# A page has fewer things to come to.
TABS_MAX = 120


@pytest.fixture
def brokers() -> Iterator[GroupBrokers]:
    with GroupBrokers("broker-a", "broker-b") as brokers:
        for broker in brokers.brokers.values():
            client = ProducerInfo(client_id="10.0.0.7@1", language="JAVA", version=493, remote_ip="/10.0.0.7:4")
            broker.topics["orders"] = TopicConfig(topic_name="orders")
            broker.groups["billing"] = SubscriptionGroupConfig(group_name="billing")
            settings = write_properties({"fileReservedTime": "24", "brokerName": broker.name}).encode()
            broker.server.succeed(RequestCode.GET_BROKER_CONFIG, settings)
            producers = write_body(ProducerTable(data={"shop": [client]}))
            broker.server.succeed(RequestCode.GET_ALL_PRODUCER_INFO, producers)
        yield brokers


@pytest.fixture
def console(brokers: GroupBrokers, site: Site, page: Page) -> Page:
    """Not logged in yet; "local" has a shop, and "prod" brokers that answer."""
    site.carry_out("empty_cluster")
    site.carry_out("shop")
    site.carry_out("failure_raised")
    site.carry_out("rebalanced", group="billing")
    addresses = [broker.server.address for broker in brokers.brokers.values()]
    site.carry_out("cluster_behind", namesrv=brokers.namesrv, brokers=list(brokers.brokers), addresses=addresses)
    return page


def violations(page: Page) -> str:
    """Returns what axe finds on the open page, in both themes and at both widths."""
    found = []
    page.evaluate(AXE_SCRIPT)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(DRAWN)
        for theme, options in THEMES.items():
            page.emulate_media(color_scheme=theme)
            result = AxeResults(page.evaluate("options => axe.run(options)", options))
            if result.violations_count:
                found.append(f"{page.url} at {width}, {theme}: {result.generate_report()}")
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    return "\n".join(found)


def test_no_page_breaks_a_rule_of_accessibility(console: Page) -> None:
    found = [violations(console)]
    log_in(console)
    for address in (*PAGES, *(f"/clusters/prod/{path}" for path in ASKING), NO_PAGE):
        response = console.goto(address)
        assert response is not None
        assert response.status == (404 if address == NO_PAGE else 200), address
        found.append(violations(console))
    console.goto("/clusters/prod/create-topic/?topic=refunds&read_queues=4&write_queues=4&perm=6")
    console.get_by_role("button", name="Create a topic").click()
    expect(console.locator("#run .page-head .status")).to_have_text("DONE")
    found.append(violations(console))
    console.goto("/audit/1/")
    found.append(violations(console))
    console.goto("/clusters/prod/configuration/")
    console.get_by_label("Text of the file").fill("topics:\n  refunds:\n    owner: shop\n")
    console.get_by_role("button", name="Compare").click()
    console.get_by_role("button", name="Apply the file").click()
    expect(console.locator("#items")).to_contain_text("refunds")
    found.append(violations(console))
    assert not any(found), "\n".join(found)


def tab_to(page: Page, wanted: Locator) -> None:
    """Presses Tab until the focus is there, where it must be seen."""
    expect(wanted).to_be_visible()
    for _ in range(TABS_MAX):
        page.keyboard.press("Tab")
        if wanted.evaluate("it => it === document.activeElement"):
            assert wanted.evaluate("it => getComputedStyle(it).outlineStyle") != "none", "the focus cannot be seen"
            return
    raise AssertionError(f"Tab does not lead to {wanted}")


def press(page: Page, role: str, name: str) -> None:
    tab_to(page, page.get_by_role(role, name=name, exact=True).first)  # type: ignore[arg-type]
    page.keyboard.press("Enter")


def test_a_topic_is_created_and_taken_back_by_the_keyboard_alone(brokers: GroupBrokers, console: Page) -> None:
    for label, text in (("Name", "admin"), ("Password", PASSWORD)):
        if not console.get_by_label(label).evaluate("it => it === document.activeElement"):
            tab_to(console, console.get_by_label(label))
        console.keyboard.type(text)
    console.keyboard.press("Enter")
    expect(console.get_by_role("heading", level=1)).not_to_have_text("Log in")
    press(console, "link", "prod")
    expect(console).to_have_url(re.compile("/clusters/prod/$"))
    press(console, "link", "Topics")
    expect(console).to_have_url(re.compile("/clusters/prod/topics/$"))
    press(console, "link", "Create a topic")
    expect(console).to_have_url(re.compile("/create-topic/"))
    tab_to(console, console.get_by_label("Name"))
    console.keyboard.type("refunds")
    press(console, "button", "Preview")
    expect(console.locator("#changes tr[data-row=broker-b]")).to_contain_text("new")
    press(console, "button", "Create a topic")
    expect(console.locator("#items tr[data-row=broker-b]")).to_contain_text("DONE")
    assert [one.topics["refunds"].read_queue_nums for one in brokers.brokers.values()] == [8, 8]
    press(console, "link", "Take it back")
    expect(console).to_have_url(re.compile("/topics/refunds/delete/"))
    tab_to(console, console.get_by_label("Nothing can take this back"))
    console.keyboard.type("refunds")
    console.keyboard.press("Enter")
    expect(console.locator("#items tr[data-row=broker-a]")).to_contain_text("deleted")
    assert not any("refunds" in one.topics for one in brokers.brokers.values())
