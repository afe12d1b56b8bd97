"""A newcomer's hour on one install: `manage.py up --demo`, a browser, Apache's Java client, and everything that dies.

The example shop sends, our broker stores, Celery workers consume, the browser shows it live. The tests share the
install, and those that need the shop's groups undisturbed wait until they are settled.
"""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from remoting.client.errors import ClientError
from remoting.client.producer import Producer
from remoting.wire.stored_message import StoredMessage
from tests.support.asking import has_route
from tests.support.broker_probe import BrokerProbe
from tests.support.browser import chromium, log_in, open_context  # noqa: F401 - fixtures
from tests.support.install import Install
from tests.support.java_client import JavaClient
from tests.support.postgres import PostgresServer
from tests.support.tools import require
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis, pytest.mark.browser, pytest.mark.timeout(1800)]

GROUPS = ("billing", "mailing")
QUEUES = {0, 1, 2, 3}
LOCAL = "/clusters/local"
BILLING = f"{LOCAL}/groups/billing/"
SETTLED_WITHIN_S = 150.0
DRIVEN_WITHIN_S = 120.0
LEVEL_1_MS = 1_000
# Longer than its test may wait.
SENDING_S_MAX = 600.0
FIRST_RETRY_MS = 10_000
# A change must be on an open page within this time.
LIVE_WITHIN_MS = 90_000
# What a newcomer may wait for the first report, Java's start and Spark's included: a minute of processor time, of which
# it got a seventh of a core where both were busy.
REPORTED_WITHIN_MS = 900_000
# What the browser draws of a chart: for each group its bars, by their names.
BARS = """key => {
  const bars = {};
  for (const { name, x, customdata } of document.querySelector(`[data-chart=${key}]`).data)
    customdata.forEach((group, at) => { (bars[group] ??= {})[name] = x[at]; });
  return bars;
}"""


class Shop:
    """The running install, and what its broker says."""

    def __init__(self, install: Install) -> None:
        self.install = install
        self.broker = BrokerProbe(install.broker)

    def wait_settled(self) -> None:
        """Two members in each group, who pull all queues of the shop's orders, on both loops workers."""
        wait_until(lambda: all(map(self._is_settled, GROUPS)), SETTLED_WITHIN_S, self._told)

    def _is_settled(self, group: str) -> bool:
        try:
            members, owners = self.broker.members(group), self.broker.pulled_by(group, "orders")
        except OSError:
            return False
        shares_all = set(owners) == QUEUES and set(owners.values()) == members
        return shares_all and len(members) == 2 and len(self.install.hosts(members)) == 2

    def _told(self) -> str:
        """Per group its members with the workers that host them, and who pulls which queue; the end of the log."""
        seen = {
            group: (
                {member: self.install.hosts({member}) for member in self.broker.members(group)},
                self.broker.pulled_by(group, "orders"),
            )
            for group in GROUPS
        }
        return f"a settled shop: {seen}\n{self.install.output()[-4000:]}"

    def lines(self, pattern: str) -> list[re.Match[str]]:
        return list(re.finditer(pattern, self.install.output()))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    require(os.path.isdir("/proc"), "the supervisor's guarantees need Linux")
    # Unix socket paths are short.
    with Install(tmp_path_factory.mktemp("loop") / "data", "--demo") as install:
        yield Shop(install)


@pytest.fixture(scope="module")
def visitor(chromium: Browser, shop: Shop) -> Iterator[BrowserContext]:
    """Somebody who has logged in with the password that `up` printed."""
    context = open_context(chromium, base_url=shop.install.web.rstrip("/"), viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto("/")
    log_in(page, shop.install.password)
    page.close()
    yield context
    context.close()


@pytest.fixture
def open_page(visitor: BrowserContext) -> Iterator[Callable[[str], Page]]:
    """Opens pages that must neither be loaded again nor log an error; returns once they are live."""
    pages: list[Page] = []
    errors: list[str] = []

    def open_one(address: str) -> Page:
        page = visitor.new_page()
        pages.append(page)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
        page.evaluate("window.notReloaded = true")
        return page

    yield open_one
    for page in pages:
        page.close()
    assert not errors


@pytest.fixture
def known_groups(visitor: BrowserContext) -> None:
    """The console has heard of both groups, so that their pages are there."""
    groups = [f"/api/v1{LOCAL}/groups/{group}" for group in GROUPS]
    wait_until(lambda: all(visitor.request.get(group).ok for group in groups), what="the groups in the console")


def assert_not_reloaded(*pages: Page) -> None:
    assert all(page.evaluate("window.notReloaded === true") for page in pages)


def eventually_has(page: Page, selector: str, text: str | re.Pattern[str]) -> None:
    expect(page.locator(selector)).to_have_text(text, timeout=LIVE_WITHIN_MS)


# what a newcomer sees


def test_the_overview_fills_before_the_eyes_of_who_is_early_and_the_groups_have_members(
    shop: Shop, open_page: Callable[[str], Page]
) -> None:
    overview = open_page("/")
    shop.wait_settled()
    eventually_has(overview, "#clusters [data-row=local] [data-cell=brokers]", re.compile(r"OK\s+1/1"))
    eventually_has(overview, "#clusters [data-row=local] [data-cell=groups]", "2")
    groups = open_page(f"{LOCAL}/groups/")
    for group in GROUPS:
        eventually_has(groups, f"#groups [data-row={group}] [data-cell=members]", "2")
    assert_not_reloaded(overview, groups)


@pytest.mark.usefixtures("known_groups")
def test_lag_and_progress_move_on_the_open_page_of_a_group(shop: Shop, open_page: Callable[[str], Page]) -> None:
    page = open_page(BILLING)
    lag = page.locator("#figures [data-cell=lag]")
    committed = page.locator("tr[data-row='orders/broker-a/0'] [data-cell=committed]")
    expect(lag).to_have_text(re.compile(r"^\d+$"), timeout=LIVE_WITHIN_MS)
    expect(lag).not_to_have_text(lag.inner_text(), timeout=LIVE_WITHIN_MS)
    expect(committed).not_to_have_text(committed.inner_text(), timeout=LIVE_WITHIN_MS)
    assert_not_reloaded(page)


# What our runtime says of the instance that comes, or goes, with that number.
_OF_INSTANCE = {3: r"started on loops", 2: r"stopped on loops.*: it was asked to stop"}


@pytest.mark.usefixtures("known_groups")
def test_an_instance_more_on_the_page_is_a_rebalance_on_it(shop: Shop, open_page: Callable[[str], Page]) -> None:
    shop.wait_settled()
    form, health = open_page(BILLING), open_page(BILLING)
    members, timeline = open_page(f"{BILLING}members/"), open_page(f"{BILLING}rebalances/")
    watching = (health, members, timeline)
    expect(members.locator("#members tbody tr")).to_have_count(2)
    for wanted in (3, 2):
        form.get_by_label("Instances wanted").fill(str(wanted))
        form.get_by_role("button", name="Set").click()
        expect(form.get_by_text(f"billing is set to {wanted} instances.")).to_be_visible()
        eventually_has(health, "#figures [data-cell=members]", str(wanted))
        expect(members.locator("#members tbody tr")).to_have_count(wanted, timeout=LIVE_WITHIN_MS)
        word = "joined" if wanted == 3 else "left"
        moved = timeline.get_by_text(re.compile(rf"{word}, {wanted} members after that")).first
        expect(moved).to_be_visible(timeout=LIVE_WITHIN_MS)
        for words in (f"{wanted} instances are to run from now on", _OF_INSTANCE[wanted]):
            expect(timeline.get_by_text(re.compile(words)).first).to_be_visible(timeout=LIVE_WITHIN_MS)
    assert_not_reloaded(*watching)


@pytest.mark.spark
@pytest.mark.usefixtures("known_groups")
def test_a_report_made_now_tells_and_draws_what_was_sampled_so_far(
    shop: Shop, open_page: Callable[[str], Page]
) -> None:
    page, asking = open_page(f"{LOCAL}/reports/"), open_page(f"{LOCAL}/reports/")
    wait_until(lambda: all(has_consumed(page, group) for group in GROUPS), what="samples between which both consumed")
    asking.get_by_role("link", name="Make today's report now").click()
    asking.get_by_role("button", name="Make a report").click()
    expect(page.locator(".run-progress progress")).to_be_visible(timeout=REPORTED_WITHIN_MS)
    day = page.locator("#days tbody a")
    expect(day).to_be_visible(timeout=REPORTED_WITHIN_MS)
    assert_not_reloaded(page)

    told = page.request.get(f"/api/v1{LOCAL}/reports/{day.inner_text()}").json()["items"]
    figures = {one["group"]: one for one in told}
    day.click()
    expect(page.locator("#chart-lag .main-svg").first).to_be_visible()
    assert page.evaluate(BARS, "lag") == {
        name: {"median": one["lag_p50"], "95th percentile": one["lag_p95"], "most": one["lag_max"]}
        for name, one in figures.items()
        if one["lag_max"]
    }
    for group in GROUPS:
        assert 0 < figures[group]["consumed"] <= sum(shop.broker.committed(group, "orders").values())
        assert figures[group]["known_s"] > 0
        expect(page.locator(f"#groups tr[data-row={group}]")).to_contain_text(f"{figures[group]['consumed']:,}")


def has_consumed(page: Page, group: str) -> bool:
    """Whether the console has sampled that it consumed, on which a report of today then counts."""
    curve = page.request.get(f"/api/v1{LOCAL}/groups/{group}/curve?minutes=10").json()
    return any(point["out_per_s"] for point in curve["items"])


@pytest.mark.java
def test_apaches_java_client_works_beside_the_shop_and_the_console_shows_it(
    shop: Shop, java_process_5_4_0: JavaClient, open_page: Callable[[str], Page]
) -> None:
    java = java_process_5_4_0.on(shop.install.namesrv)
    java.producer("loop-producer")
    java.send("loop-producer", "java-orders", count=1)
    member = java.consumer("loop-consumer", "java-billing", "java-orders")
    java.send("loop-producer", "java-orders", count=40, first=1)
    java.wait_consumed(40, "loop-consumer")

    groups = open_page(f"{LOCAL}/groups/")
    eventually_has(groups, "#groups [data-row=java-billing] [data-cell=members]", "1")
    members = open_page(f"{LOCAL}/groups/java-billing/members/")
    row = members.locator(f'#members [data-row="{member}"]')
    expect(row).to_contain_text(re.compile(r"JAVA\s+5\.4\.0"), timeout=LIVE_WITHIN_MS)
    expect(row.locator("[data-cell=queues]")).to_have_text(re.compile(r"java-orders\s*0\s*1\s*2\s*3"))
    java.stop("loop-consumer")
    expect(row.and_(members.locator("#members tr"))).to_have_count(0, timeout=LIVE_WITHIN_MS)
    assert_not_reloaded(groups, members)
    java.stop("loop-producer")


@pytest.mark.usefixtures("known_groups")
def test_a_message_whose_listener_fails_comes_back_after_ten_seconds(
    shop: Shop, open_page: Callable[[str], Page]
) -> None:
    page = open_page(f"{LOCAL}/groups/mailing/")
    failed = r"group mailing: topic orders message (\w+) \(times 0\) comes back later"
    before = len(shop.lines(failed))

    def one_fails() -> re.Match[str] | None:
        shop.broker.send("orders", b'{"number": 1, "customer": "anna", "cents": 100}', tags="created")
        return next(iter(shop.lines(failed)[before:]), None)

    message_id = wait_until(one_fails, what="a mail that fails")[1]

    def in_topic(topic: str) -> StoredMessage | None:
        found = (one for queue_id in QUEUES for one in shop.broker.messages(topic, queue_id))
        return next((one for one in found if one.message_id == message_id), None)

    sent = in_topic("orders")
    assert sent is not None
    again = wait_until(lambda: in_topic("%RETRY%mailing"), what="the message in the retry topic")
    assert again.store_timestamp_ms - sent.store_timestamp_ms >= FIRST_RETRY_MS
    queue = "tr[data-row='%RETRY%mailing/broker-a/0']"
    expect(page.locator(f"{queue} [data-cell=max]")).not_to_have_text("0", timeout=LIVE_WITHIN_MS)
    expect(page.locator(f"{queue} [data-cell=lag]")).to_have_text("0", timeout=LIVE_WITHIN_MS)
    assert_not_reloaded(page)


# what dies


def test_the_queues_of_a_killed_loops_worker_are_consumed_by_the_others_at_once(shop: Shop) -> None:
    shop.wait_settled()
    worker = shop.install.child("loops-1@")

    def on_the_worker() -> set[str]:
        before = {group: shop.broker.members(group) for group in GROUPS}
        lost = {one for members in before.values() for one in members if shop.install.hosts({one}) == {"loops-1"}}
        return lost if all(before[group] & lost and before[group] - lost for group in GROUPS) else set()

    lost = wait_until(on_the_worker, what="members of each group on this worker, and others elsewhere")
    worker.kill()
    killed_s = time.monotonic()

    def is_taken_over() -> bool:
        pullers = [shop.broker.pulled_by(group, "orders") for group in GROUPS]
        return all(set(queues) == QUEUES and not lost & set(queues.values()) for queues in pullers)

    wait_until(is_taken_over, what="all queues pulled by members that live")
    print(f"\nqueues of a killed worker pulled by the others after {time.monotonic() - killed_s:.2f} s")

    def is_complete() -> bool:
        return all(len(shop.broker.members(group) - lost) == 2 for group in GROUPS)

    wait_until(is_complete, what="two members in each group again")
    print(f"as many instances as wanted after {time.monotonic() - killed_s:.2f} s")
    progress = shop.broker.committed("billing", "orders")
    wait_until(lambda: is_ahead(shop.broker.committed("billing", "orders"), progress), what="progress on every queue")
    shop.wait_settled()
    print(f"on two workers again after {time.monotonic() - killed_s:.2f} s")


def is_ahead(now: dict[int, int], before: dict[int, int]) -> bool:
    return all(now[queue_id] > offset for queue_id, offset in before.items())


def test_a_killed_scheduler_worker_is_replaced_and_what_is_due_comes_once_and_not_early(shop: Shop) -> None:
    driver = wait_until(lambda: shop.broker.driver)
    ready = r"scheduler@\S+ ready\."
    starts = len(shop.lines(ready))
    shop.install.child("scheduler@").kill()
    sent_ms = shop.broker.send("late", b"while nobody drives", delay_level=1) * 1000

    wait_until(lambda: len(shop.lines(ready)) > starts, what="the scheduler worker's next start")
    wait_until(lambda: shop.broker.driver not in ("", driver), DRIVEN_WITHIN_S, "another driver")
    wait_until(lambda: shop.broker.messages("late"), what="the delayed message")
    second_ms = shop.broker.send("late", b"later", delay_level=1) * 1000
    wait_until(lambda: len(shop.broker.messages("late")) > 1, what="another delayed message")
    first, second = shop.broker.messages("late")
    assert (first.body, second.body) == (b"while nobody drives", b"later")
    assert first.store_timestamp_ms >= sent_ms + LEVEL_1_MS
    assert second.store_timestamp_ms >= second_ms + LEVEL_1_MS


class Counting(threading.Thread):
    """Sends numbers through our own producer until it is told to stop; remembers what was acknowledged."""

    def __init__(self, namesrv: str, topic: str) -> None:
        super().__init__(name="counting", daemon=True)
        self._namesrv = namesrv
        self._topic = topic
        self._stop_asked = threading.Event()
        self.acknowledged: list[int] = []
        self.sent = 0

    def run(self) -> None:
        asyncio.run(self._send())

    async def _send(self) -> None:
        async with asyncio.timeout(SENDING_S_MAX):
            producer = Producer(self._namesrv, "counting")
            await producer.start()
            while not self._stop_asked.is_set():
                number = self.sent
                self.sent += 1
                try:
                    await producer.send(self._topic, b"%d" % number)
                    self.acknowledged.append(number)
                except ClientError:
                    await asyncio.sleep(0.1)
            await producer.close()

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(60)
        assert not self.is_alive()


def test_a_killed_broker_comes_back_with_everything_it_acknowledged_and_consumers_go_on(shop: Shop) -> None:
    shop.wait_settled()
    counting = Counting(shop.install.namesrv, "numbers")
    counting.start()
    try:
        wait_until(lambda: len(counting.acknowledged) > 200, what="200 acknowledged messages")
        shop.install.child("runbroker").kill()
        killed_s = time.monotonic()
        killed_ms = int(time.time() * 1000)
        wait_until(lambda: has_route(shop.install.namesrv), what="a broker that answers again")
        print(f"\nthe broker answered again after {time.monotonic() - killed_s:.2f} s")
        before = len(counting.acknowledged)
        wait_until(lambda: len(counting.acknowledged) > before + 100, what="100 more acknowledged messages")
    finally:
        counting.stop()
    stored = [int(one.body) for queue_id in QUEUES for one in shop.broker.messages("numbers", queue_id)]
    assert set(counting.acknowledged) <= set(stored)
    assert set(stored) <= set(range(counting.sent))

    def all_pulled(group: str) -> bool:
        return set(shop.broker.pulled_by(group, "orders", since_ms=killed_ms)) == QUEUES

    wait_until(lambda: all(map(all_pulled, GROUPS)), what="every queue pulled again")
    print(f"consumers pulled again after {time.monotonic() - killed_s:.2f} s")
    progress = shop.broker.committed("billing", "orders")
    wait_until(lambda: is_ahead(shop.broker.committed("billing", "orders"), progress), what="progress on every queue")
    shop.wait_settled()


def test_everything_stops_in_order_and_leaves_nothing(shop: Shop) -> None:
    assert shop.install.stop() == 0
    assert shop.install.left_behind() == []
    stopping = shop.install.output().partition("stopping")[2]
    assert "killed" not in stopping
    assert "Traceback" not in shop.install.output()


# the same with the database of production


@pytest.mark.postgres
def test_the_shop_runs_on_postgresql(chromium: Browser, tmp_path: Path) -> None:
    with (
        PostgresServer() as database,
        Install(tmp_path / "data", "--demo", env={"DATABASE_URL": database.url}) as install,
    ):
        Shop(install).wait_settled()
        page = open_context(chromium, base_url=install.web.rstrip("/")).new_page()
        page.goto("/")
        log_in(page, install.password)
        page.goto(f"{LOCAL}/groups/")
        for group in GROUPS:
            eventually_has(page, f"#groups [data-row={group}] [data-cell=members]", "2")
        page.goto(f"{BILLING}members/")
        expect(page.locator("#members tbody tr")).to_have_count(2, timeout=LIVE_WITHIN_MS)
        page.context.close()
        assert not (install.data / "mqadmin.sqlite3").exists()
        assert install.stop() == 0
        assert install.left_behind() == []
        assert "Traceback" not in install.output()
