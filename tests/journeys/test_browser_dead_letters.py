"""Dead letters in a browser, on a real broker and with a real worker, in English and in Chinese.

A group fails on messages; somebody finds the failure, describes and mends it, and replays it with a second person's
approval while its page shows what happens; and rules do by themselves what they were made for.
"""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.journeys.dead_letter_site import (  # noqa: F401 - fixtures
    CHINESE,
    DEAD,
    ENGLISH,
    LANGUAGES,
    Words,
    ask,
    broker,
    carry_out,
    confirm,
    follow,
    group,
    link,
    opened,
    site,
    standing_site,
)
from tests.support.browser import Site, chromium  # noqa: F401 - fixtures
from tests.support.failing_group import FailingGroup
from tests.support.our_broker import OurBroker
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.browser, pytest.mark.redis, pytest.mark.timeout(1800)]

# At one a second they take longer than whoever pauses their replay, or cancels it, on a busy machine.
COUNT = 40
BODIES = [f'{{"order":{number}}}' for number in range(COUNT)]


@LANGUAGES
def test_a_failure_is_found_described_mended_and_replayed(
    chromium: Browser, site: Site, broker: OurBroker, group: FailingGroup, words: Words
) -> None:
    group.send_and_fail(*BODIES)
    site.carry_out("indexed", dead_count=COUNT)
    page = opened(chromium, site, words)

    # Found, and understood.
    page.goto(DEAD)
    expect(page.locator("#failures [data-cell=dead]")).to_have_text(str(COUNT))
    follow(page, page.locator("#failures a.row-link"), "/failures/")
    expect(page.locator("h1")).to_contain_text("PaymentTimeout")
    failure = page.url
    link(page, "/describe/")
    carry_out(page, words, owner="payments", note="The gateway is down: ask Ada.")
    page.goto(failure)
    expect(page.locator(".note")).to_have_text("The gateway is down: ask Ada.")
    expect(page.locator("#figures")).to_contain_text("payments")
    link(page, f"{DEAD}1")
    expect(page.locator(".message-body")).to_contain_text('"order"')

    # Archived, and brought back.
    page.goto(failure)
    link(page, "/archive/")
    carry_out(page, words)
    page.goto(failure)
    expect(page.locator("main .notice")).to_contain_text(words.archived)
    page.goto(DEAD)
    expect(page.locator("#failures")).to_have_count(0)
    page.goto(failure)
    link(page, "/restore/")
    carry_out(page, words)
    page.goto(DEAD)
    expect(page.locator("#failures [data-cell=dead]")).to_have_text(str(COUNT))

    # Mended, after what was typed first was refused.
    page.goto(f"{DEAD}1/")
    mended_id = page.locator("h1").inner_text()
    link(page, "/mend/")
    body = page.locator("textarea[name=body]")
    before = body.input_value()
    body.fill("{order: none}")
    page.locator("button[name=preview]").click()
    expect(page.get_by_role("alert")).to_contain_text(words.refusal)
    body.fill('{"order": "mended"}')
    page.locator("button[name=preview]").click()
    expect(page.locator("[data-part=body-diff] ins").first).to_contain_text("mended")
    page.locator("button[name=run]").click()
    expect(page.locator("#run .page-head .status")).to_have_text(words.done)
    assert "order" in before

    # The dry run warns; with a mended copy among them, it waits for a second person.
    group.leave()
    site.carry_out("indexed", dead_count=COUNT)
    page.goto(failure)
    link(page, "/deadletters/replay/")
    page.locator("#ask [name=rate]").fill("1")
    ask(page)
    expect(page.locator("#preview .warnings")).to_contain_text(words.nobody_online)
    expect(page.locator("#preview .warnings")).to_contain_text(words.approval)
    confirm(page, words)
    live = "/clusters/here/replays/1/"
    page.goto(live)
    state = page.locator("main .page-head .status").first
    expect(state).to_have_text(words.asked)
    link(page, "/approve/")
    expect(page.get_by_role("alert")).to_contain_text(words.own)
    page.goto(live)
    page.evaluate("window.notReloaded = true")
    grace = opened(chromium, site, words, "grace")
    grace.goto(f"{live}approve/")
    carry_out(grace, words)

    # Its page shows what happens, without being loaded again; somebody else changes it meanwhile.
    expect(state).to_have_text(words.running)
    sent = page.locator("[data-cell=sent]")
    expect(sent).not_to_have_text("0")
    grace.goto(f"{live}pause/")
    carry_out(grace, words)
    expect(state).to_have_text(words.paused)
    grace.goto(f"{live}rate/")
    carry_out(grace, words, rate="50")
    expect(page.locator("[data-cell=rate]")).to_have_text("50")
    assert sent.inner_text() != str(COUNT)
    group.heal()
    group.join()
    grace.goto(f"{live}resume/")
    carry_out(grace, words)
    expect(state).to_have_text(words.done)
    expect(sent).to_have_text(str(COUNT))
    expect(page.locator("#ledger tbody tr")).to_have_count(COUNT)
    assert page.evaluate("window.notReloaded")
    group.wait_consumed('{"order":"mended"}')
    group.wait_consumed(*(one for one in BODIES if json_of(one) != json_of(before)))
    assert len(group.consumed) == COUNT
    page.locator("[data-cell=sent] a").click()
    expect(page.locator("#ledger")).to_contain_text(mended_id)

    # Another one, slowly, is cancelled.
    page.goto(failure)
    link(page, "/deadletters/replay/")
    carry_out(page, words, rate="1", skip_replayed="no", ids=" ".join(str(number) for number in range(2, COUNT)))
    page.goto("/clusters/here/replays/2/")
    state = page.locator("main .page-head .status").first
    expect(state).to_have_text(words.running)
    link(page, "/cancel/")
    carry_out(page, words)
    page.goto("/clusters/here/replays/2/")
    expect(state).to_have_text(words.cancelled)
    expect(page.locator("[data-cell=skipped]")).not_to_have_text("0")


def json_of(text: str) -> str:
    return "".join(text.split())


@LANGUAGES
def test_rules_replay_raise_and_archive_by_themselves(
    chromium: Browser, site: Site, broker: OurBroker, group: FailingGroup, words: Words
) -> None:
    rules = f"{DEAD}rules/"
    group.send_and_fail("the first one")
    site.carry_out("indexed", dead_count=1)
    page = opened(chromium, site, words)
    raised = page.locator("main .status", has_text=words.raised)
    page.goto(DEAD)
    follow(page, page.locator("#failures a.row-link"), "/failures/")
    failure = page.url
    for rule, does in (("try again", "replay"), ("tell us", "raise")):
        page.goto(failure)
        link(page, "/rules/make/")
        carry_out(page, words, rule=rule, does=does, after_minutes="10", rate="50")
        page.goto(rules)
        row = page.locator(f"#rules tr[data-row='{rule}']")
        expect(row).to_contain_text(words.paused)
        follow(page, row.locator("a[href$='/running/']"), "/running/")
        carry_out(page, words)
        page.goto(rules)
        expect(row).to_contain_text(words.running)

    # What dies from now on is theirs, ten minutes later.
    group.send_and_fail("the second one", "the third one")
    site.carry_out("indexed", dead_count=3)
    site.carry_out("rules_applied", minutes_later=9)
    page.goto("/")
    expect(raised).to_have_count(0)
    group.heal()
    site.carry_out("rules_applied", minutes_later=11)
    group.wait_consumed("the second one", "the third one")
    assert "the first one" not in group.consumed
    page.goto("/clusters/here/replays/1/")
    expect(page.locator("main .page-head .status").first).to_have_text(words.done)
    expect(page.locator("[data-cell=sent]")).to_have_text("2")
    page.goto(rules)
    expect(page.locator("#rules tr[data-row='try again']")).to_contain_text(words.done)
    page.goto("/")
    expect(raised).to_have_count(1)
    expect(page.locator("main")).to_contain_text("PaymentTimeout")

    # A rule that archives takes it from the overview, too.
    page.goto(failure)
    link(page, "/rules/make/")
    carry_out(page, words, rule="enough", does="archive", after_minutes="1")
    page.goto(f"{rules}enough/running/")
    carry_out(page, words)
    group.sicken()
    group.send_and_fail("the fourth one")
    site.carry_out("indexed", dead_count=4)
    site.carry_out("rules_applied", minutes_later=2)
    page.goto(failure)
    expect(page.locator("main .notice")).to_contain_text(words.archived)
    page.goto("/")
    expect(raised).to_have_count(0)


def test_a_message_is_seen_on_its_way_through_the_retries(chromium: Browser, site: Site, broker: OurBroker) -> None:
    with FailingGroup(broker, "orders", "mailing", retries=16) as group:
        group.send_and_fail("a letter")
        pages = [opened(chromium, site, words) for words in (ENGLISH, CHINESE)]

        def waiting(page: Page) -> bool:
            # The first wait is of ten seconds, and each of those that follow is longer.
            site.carry_out("indexed", dead_count=0)
            page.goto("/clusters/here/groups/mailing/retries/")
            return bool(page.locator("#waiting tbody tr").count()) and not page.locator("#unanswered").count()

        for page, limit, summary in zip(
            pages, (r"\d+ of 17", r"\d+ / 17"), ("1 message waits", "1 条消息等待"), strict=True
        ):
            wait_until(lambda page=page: waiting(page), 300, "the message among those that wait")
            row = page.locator("#waiting tbody tr")
            expect(row.locator("[data-cell=attempt]")).to_have_text(re.compile(limit))
            expect(row).to_contain_text("PaymentTimeout the gateway did not answer")
            expect(page.locator("#summary")).to_contain_text(summary)
            expect(page.locator("#attempts tbody tr").first).to_contain_text("orders")
            expect(page.locator("#unanswered")).to_have_count(0)
