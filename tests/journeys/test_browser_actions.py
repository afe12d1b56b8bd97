"""A browser runs actions: a topic created with a double click, changed, taken back, and deleted by its typed name."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from remoting.wire.bodies.topics import TopicConfig
from tests.support.browser import Site, chromium, log_in, page, site, standing_site  # noqa: F401 - fixtures
from tests.support.topic_brokers import TopicBrokers

pytestmark = [pytest.mark.journey, pytest.mark.browser, pytest.mark.redis]


@pytest.fixture
def brokers() -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a", "broker-b") as brokers:
        yield brokers


@pytest.fixture
def prod(brokers: TopicBrokers, site: Site, page: Page) -> Page:
    """Logged in, on the topics of a cluster with two brokers."""
    site.carry_out("cluster_behind", namesrv=brokers.namesrv, brokers=["broker-a", "broker-b"])
    log_in(page)
    page.goto("/clusters/prod/topics/")
    return page


def test_a_topic_is_created_once_by_a_double_click_and_deleted_by_its_name(brokers: TopicBrokers, prod: Page) -> None:
    prod.get_by_role("link", name="Create a topic").click()
    prod.get_by_label("Name").fill("not a name")
    prod.get_by_role("button", name="Preview").click()
    expect(prod.get_by_label("Name")).to_have_value("not a name")
    expect(prod.get_by_text("holds a character other than")).to_be_visible()
    prod.get_by_label("Name").fill("refunds")
    prod.get_by_label("Queues to read").fill("4")
    prod.get_by_role("button", name="Preview").click()
    expect(prod.locator("#changes tr[data-row=broker-b]")).to_contain_text("queues to read 4")
    assert not brokers["broker-a"].topics
    prod.get_by_role("button", name="Create a topic").dblclick()
    expect(prod.locator("#items tr[data-row=broker-b]")).to_contain_text("DONE")
    assert [one.topics["refunds"].read_queue_nums for one in brokers.brokers.values()] == [4, 4]
    created = [code for one in brokers.brokers.values() for code in one.server.asked_codes() if code == 17]
    assert len(created) == 2, "a second click asks nobody again"

    prod.get_by_role("link", name="Take it back").click()
    expect(prod).to_have_url(re.compile("/topics/refunds/delete/"))
    prod.get_by_label("Nothing can take this back").fill("refund")
    prod.get_by_role("button", name="Delete the topic").click()
    expect(prod.get_by_text("Type the name refunds to confirm.")).to_be_visible()
    prod.get_by_label("Nothing can take this back").fill("refunds")
    prod.keyboard.press("Enter")
    expect(prod.locator("#items tr[data-row=broker-a]")).to_contain_text("deleted")
    assert not brokers["broker-a"].topics


def test_a_page_that_has_grown_old_shows_what_is_there_now(brokers: TopicBrokers, prod: Page) -> None:
    address = "/clusters/prod/create-topic/?topic=refunds&read_queues=4&write_queues=4&perm=6"
    prod.goto(address)
    other = prod.context.new_page()
    other.goto(address.replace("read_queues=4", "read_queues=16"))
    other.get_by_role("button", name="Create a topic").click()
    expect(other.locator("#run .page-head .status")).to_have_text("DONE")
    prod.get_by_role("button", name="Create a topic").click()
    expect(prod.get_by_text("refunds has changed since this page was opened")).to_be_visible()
    expect(prod.locator("#changes tr[data-row=broker-a]")).to_contain_text("queues to read 16 → 4")
    assert brokers["broker-a"].topics["refunds"].read_queue_nums == 16


def test_many_topics_are_changed_by_a_double_click_once_each(brokers: TopicBrokers, prod: Page) -> None:
    for broker in brokers.brokers.values():
        broker.topics["orders"] = TopicConfig(topic_name="orders")
    prod.get_by_role("link", name="Change many at once").click()
    prod.get_by_label("What to do").select_option("Set the permission")
    expect(prod.get_by_role("checkbox", name="orders")).to_be_checked()
    prod.get_by_role("button", name="Go on").click()
    prod.get_by_label("Permission").select_option("read only")
    prod.get_by_role("button", name="Preview").click()
    expect(prod.locator("#changes tr[data-row=orders]")).to_contain_text("read and write → read only")
    prod.get_by_role("button", name="Set the permission (1)").dblclick()
    expect(prod.locator("#items tr[data-row=orders]")).to_contain_text("DONE")
    assert [one.topics["orders"].perm for one in brokers.brokers.values()] == [4, 4]
    changed = [code for one in brokers.brokers.values() for code in one.server.asked_codes() if code == 17]
    assert len(changed) == 2, "a second click asks nobody again"
