"""A console with a worker that the browser journeys of dead letters share, each with a broker and a group of its own.

Import the fixtures that a test needs, with those that they ask for; the console and its worker stand for one file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import PASSWORD, Site, open_context
from tests.support.failing_group import FailingGroup
from tests.support.our_broker import OurBroker

DEAD = "/clusters/here/deadletters/"


@dataclass(frozen=True, slots=True)
class Words:
    """What pages say, in one language."""

    locale: str
    refusal: str
    nobody_online: str
    approval: str
    own: str
    asked: str
    paused: str
    running: str
    done: str
    cancelled: str
    archived: str
    raised: str


ENGLISH = Words(
    locale="en",
    refusal="The body is JSON, and what was typed is not",
    nobody_online="No member of the group is online",
    approval="It waits until another person approves it.",
    own="You started it: another person has to approve it.",
    asked="NEEDS APPROVAL",
    paused="PAUSED",
    running="RUNNING",
    done="DONE",
    cancelled="CANCELLED",
    archived="This failure is archived",
    raised="RAISED",
)
CHINESE = Words(
    locale="zh-CN",
    refusal="消息体是 JSON，而输入的内容不是",
    nobody_online="消费组没有在线成员",
    approval="须等待另一人批准。",
    own="它由您发起：须由另一人批准。",
    asked="待批准",
    paused="已暂停",
    running="运行中",
    done="完成",
    cancelled="已取消",
    archived="该失败已归档",
    raised="需关注",
)
LANGUAGES = pytest.mark.parametrize("words", [ENGLISH, CHINESE], ids=["English", "Chinese"])


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OurBroker]:
    with OurBroker(tmp_path / "store", patient=True) as broker:
        yield broker


@pytest.fixture
def group(broker: OurBroker) -> Iterator[FailingGroup]:
    with FailingGroup(broker, "orders", "billing") as group:
        yield group


@pytest.fixture(scope="module")
def standing_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With a worker; both take longer to start than a broker of each test's own."""
    with Site(tmp_path_factory.mktemp("site"), {"MQADMIN_REPLAY_APPROVAL": "mended"}) as site, site.worker("jobs"):
        site.carry_out("beat_drives_replays")
        yield site


@pytest.fixture
def site(standing_site: Site, broker: OurBroker) -> Site:
    standing_site.begin_anew()
    standing_site.carry_out("admin", password=PASSWORD)
    standing_site.carry_out("second_person", name="grace", password=PASSWORD)
    standing_site.carry_out("real_cluster", namesrv=broker.namesrv)
    return standing_site


def opened(chromium: Browser, site: Site, words: Words, person: str = "admin") -> Page:
    context = open_context(chromium, base_url=site.url, viewport={"width": 1440, "height": 900}, locale=words.locale)
    page = context.new_page()
    page.goto("/")
    page.locator("input[name=username]").fill(person)
    page.locator("input[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/login/" not in url)
    return page


def link(page: Page, ending: str) -> None:
    """Follows the first link with this in its address, and waits for its page."""
    follow(page, page.locator(f"main a[href*='{ending}']").first, ending)


def follow(page: Page, found: Locator, ending: str) -> None:
    """Follows a link to a page with this in its address, and waits for that page."""
    found.click()
    page.wait_for_url(lambda url: ending in url)


def carry_out(page: Page, words: Words, **fields: str) -> None:
    """Fills an action's form, looks at its preview and runs it."""
    if "ids" in fields:
        page.locator("#ask summary").click()
    for name, value in fields.items():
        choice = page.locator(f"#ask input[type=radio][name={name}][value='{value}']")
        if choice.count():
            choice.check()
        else:
            page.locator(f"#ask [name={name}]:not([type=hidden])").fill(value)
    if page.locator("#ask button[type=submit]").count():
        ask(page)
    confirm(page, words)


def ask(page: Page) -> None:
    """Sends the form and waits for its page: the one before may have a preview, too, of what stood in the form then."""
    with page.expect_navigation():
        page.locator("#ask button[type=submit]").click()


def confirm(page: Page, words: Words) -> None:
    page.locator("#preview .confirm-form button[type=submit]").click()
    expect(page.locator("#run .page-head .status")).to_have_text(words.done)
