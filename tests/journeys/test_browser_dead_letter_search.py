"""What a search of dead letters finds, in a browser, on a real broker: archived, restored, replayed to topics."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.journeys.dead_letter_site import (  # noqa: F401 - fixtures
    DEAD,
    LANGUAGES,
    Words,
    broker,
    carry_out,
    group,
    link,
    opened,
    site,
    standing_site,
)
from tests.support.browser import Site, chromium  # noqa: F401 - fixtures
from tests.support.failing_group import FailingGroup
from tests.support.our_broker import OurBroker

pytestmark = [pytest.mark.journey, pytest.mark.browser, pytest.mark.redis, pytest.mark.timeout(1800)]

OSLO = [f'{{"order": {number}, "city": "Oslo"}}' for number in range(2)]
ROME = [f'{{"order": {number}, "city": "Rome"}}' for number in range(2, 5)]


def search(page: Page, **fields: str) -> None:
    """Fills the form of the list and waits for its page; fields that are shown when asked for are shown first."""
    page.goto(DEAD)
    form = page.locator("form[role=search]")
    for name, value in fields.items():
        if not form.locator(f"[name={name}]").is_visible():
            form.locator("summary").click()
        form.locator(f"[name={name}]").fill(value)
    form.locator("button[type=submit]").click()
    page.wait_for_url(lambda url: all(f"{name}=" in url for name in fields))


def found(page: Page, count: int) -> None:
    expect(page.locator("#dead-letters tbody tr")).to_have_count(count)


def done(page: Page, words: Words, replay: int, sent: int) -> None:
    page.goto(f"/clusters/here/replays/{replay}/")
    expect(page.locator("main .page-head .status").first).to_have_text(words.done)
    expect(page.locator("[data-cell=sent]")).to_have_text(str(sent))


@LANGUAGES
def test_what_a_search_finds_is_archived_restored_and_replayed_to_topics(
    chromium: Browser, site: Site, broker: OurBroker, group: FailingGroup, words: Words
) -> None:
    with FailingGroup(broker, "orders", "auditing") as auditing, FailingGroup(broker, "spare", "sparing") as sparing:
        auditing.heal()
        sparing.heal()
        group.send_and_fail(*OSLO)
        group.send_and_fail(*ROME, properties={"tenant": "acme-eu"})
        auditing.wait_consumed(*OSLO, *ROME)
        site.carry_out("indexed", dead_count=5)
        page = opened(chromium, site, words)

        # By each way.
        search(page, body='"city": "Oslo"')
        found(page, 2)
        search(page, user_property="tenant=acme-eu", attempts="99")
        found(page, 0)
        expect(page.locator("[name=user_property]")).to_have_value("tenant=acme-eu")
        search(page, user_property="tenant=ACME EU")
        found(page, 3)
        page.goto("/clusters/here/topics/orders/")
        page.locator("[data-cell=dead] a").click()
        expect(page.locator("#failures tbody tr [data-cell=dead]")).to_have_text("5")

        # Archived as a whole, found among the archived, and brought back.
        search(page, body='"city": "Oslo"')
        link(page, "/deadletters/archive/")
        carry_out(page, words)
        search(page, body='"city": "Oslo"')
        found(page, 0)
        page.locator("main a[href*='archived=1']").first.click()
        found(page, 2)
        link(page, "/deadletters/restore/")
        carry_out(page, words)
        search(page, body='"city":')
        found(page, 5)

        # To the original topic: every group of it gets them, once more.
        group.heal()
        search(page, body='"city": "Oslo"')
        link(page, "/deadletters/replay/")
        carry_out(page, words, target="origin", rate="50")
        done(page, words, 1, 2)
        group.wait_consumed(*OSLO)
        auditing.wait_consumed_times(2, *OSLO)
        assert sorted(group.consumed) == OSLO

        # To another topic: its group gets them, and nobody else.
        search(page, user_property="tenant=acme-eu")
        link(page, "/deadletters/replay/")
        carry_out(page, words, target="topic", target_topic="spare", rate="50")
        done(page, words, 2, 3)
        sparing.wait_consumed(*ROME)
        assert sorted(sparing.consumed) == ROME
        assert sorted(group.consumed) == OSLO
        assert sorted(auditing.consumed) == sorted([*OSLO, *OSLO, *ROME])

        # The key of each stands in the ledger, and on the page of the dead letter.
        key = page.locator("#ledger tbody tr code").first.inner_text()
        assert key.startswith("replay-")
        page.locator("#ledger tbody tr a").first.click()
        expect(page.locator("#replays code")).to_have_text(key)
