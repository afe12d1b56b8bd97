"""Regions pushed to open pages: rendered once for many viewers, to those who are ready, and to nobody else."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as project
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import Group as Role_
from django.contrib.sessions.models import Session
from django.db import DatabaseError, connections
from django.db.backends.signals import connection_created
from django.test import Client
from django.test.signals import template_rendered
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group
from mqadmin.live import events, pushes, regions, viewers
from mqadmin.live.events import Change, ChangeKind
from mqadmin.live.routing import live_application
from mqadmin.people.models import ClusterRole
from mqadmin.people.roles import Role
from mqadmin.reports import runs
from mqadmin.reports.progress import Progress
from tests.support.page_socket import PageSocket
from tests.support.people import give_session, make_person

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

PAGE = "/clusters/local/groups/"
HOST = (b"host", b"localhost")
ORIGIN = (b"origin", b"http://localhost")
READY = json.dumps({"type": "ready"})
SUBSCRIBE = {"type": "subscribe", "subscriptions": [{"cluster": "local", "kinds": ["groups"]}], "language": "en"}


@pytest.fixture
def group() -> Group:
    cluster = Cluster.objects.create(name="local", namesrv="127.0.0.1:9876")
    return Group.objects.create(cluster=cluster, name="billing", seen_at=timezone.now(), lag=1)


@pytest.fixture
def rendered() -> Iterator[list[str]]:
    """The regions that were rendered."""
    found: list[str] = []

    def note(template: Any, **_: Any) -> None:
        if template.name and template.name.endswith("_region.html"):
            found.append(template.name)

    template_rendered.connect(note)
    yield found
    template_rendered.disconnect(note)


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """What all threads ask the database."""
    found: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: Any, context: Any) -> Any:
        found.append(sql)
        return execute(sql, params, many, context)

    def watch(connection: Any, **_: Any) -> None:
        if note not in connection.execute_wrappers:
            connection.execute_wrappers.append(note)

    connection_created.connect(watch)
    for connection in connections.all(initialized_only=True):
        watch(connection)
    yield found
    connection_created.disconnect(watch)
    for connection in connections.all(initialized_only=True):
        connection.execute_wrappers.remove(note)


@pytest.fixture
def application() -> Any:
    # No heartbeat comes between.
    return live_application(heartbeat_s=3600, push_interval_s=0.01, judged_for_s=0)


def session_of(person: AbstractUser) -> str:
    client = Client()
    give_session(client, person)
    return str(client.cookies[project.SESSION_COOKIE_NAME].value)


async def logged_in(name: str, role: Role | None = Role.VIEWER, on: Cluster | None = None) -> str:
    def log_in() -> str:
        return session_of(make_person(name, role, on))

    key: str = await sync_to_async(log_in)()
    return key


@asynccontextmanager
async def opened(
    application: Any, session: str, page: str = PAGE, *, is_ready: bool = True, **wanted: Any
) -> AsyncIterator[PageSocket]:
    cookie = (b"cookie", f"{project.SESSION_COOKIE_NAME}={session}".encode())
    socket = PageSocket(application, "/ws/", headers=[HOST, ORIGIN, cookie])
    await socket.connect()
    await socket.say(json.dumps({**SUBSCRIBE, "page": page, **wanted}))
    assert (await socket.heard())["type"] == "subscribed"
    if is_ready:
        await socket.say(READY)
    yield socket
    await socket.disconnect()


async def region(socket: PageSocket) -> str:
    """The next region that is pushed."""
    answer = await socket.receive_output()
    assert answer["type"] == "websocket.send", answer
    assert answer.get("bytes"), answer
    return gzip.decompress(answer["bytes"]).decode()


async def lag_becomes(lag: int) -> None:
    def change() -> None:
        Group.objects.update(lag=lag, offsets_seen_at=timezone.now())
        events.publish([Change(ChangeKind.GROUPS, "local")])

    await sync_to_async(change)()


async def test_a_change_brings_the_region(application: Any, group: Group) -> None:
    async with opened(application, await logged_in("ann")) as page:
        await lag_becomes(4_811)
        html = await region(page)
        assert html.lstrip().startswith('<div id="groups" class="region"')
        assert ">4,811<" in html


async def test_the_page_of_reports_hears_how_far_a_run_is(application: Any, group: Group) -> None:
    """From the row that a run writes every few seconds to the page that somebody has open."""
    now = timezone.now()
    await sync_to_async(runs.ask)("local", now.date(), now.date(), now)
    run = await sync_to_async(runs.start_next)(now)
    assert run is not None
    progress = Progress()
    shows = [{"cluster": "local", "kinds": ["reports"]}]
    async with opened(application, await logged_in("ann"), "/clusters/local/reports/", subscriptions=shows) as page:
        for share, percent in ((0.5, 5), (1.0, 10)):
            progress.note_appended(0, 1, share)
            await sync_to_async(runs.note_progress)(run, progress.stage, progress.percent(), timezone.now())
            html = await region(page)
            assert f'<progress max="100" value="{percent}"' in html
            assert f"<span>{percent} %</span>" in html
            await page.say(READY)
        await sync_to_async(runs.end)(run, timezone.now())
        assert "<progress" not in await region(page)


async def test_many_pages_of_many_people_cost_one_rendering_and_as_many_queries_as_one(
    application: Any, group: Group, rendered: list[str], asked: list[str]
) -> None:
    sessions = [await logged_in(f"viewer {number}") for number in range(30)]
    counts = []
    async with opened(application, sessions[0]) as first:
        asked.clear()
        await lag_becomes(2)
        await region(first)
        counts.append(len(asked))
    rendered.clear()
    pages = [opened(application, session) for session in sessions]
    sockets = [await page.__aenter__() for page in pages]
    asked.clear()
    await lag_becomes(3)
    texts = {await region(socket) for socket in sockets}
    counts.append(len(asked))
    assert len(texts) == 1
    assert rendered == ["console/groups_region.html"]
    assert counts[0] == counts[1]
    for page in pages:
        await page.__aexit__(None, None, None)


async def test_a_page_that_is_not_ready_gets_nothing_and_the_newest_when_it_asks(
    application: Any, group: Group, rendered: list[str]
) -> None:
    """Slow, or hidden: with nobody else there, nothing is rendered for it."""
    async with opened(application, await logged_in("ann")) as page:
        await lag_becomes(2)
        assert ">2<" in await region(page)
        for lag in (3, 4):
            await lag_becomes(lag)
        async with opened(application, await logged_in("bob")) as reader:
            await lag_becomes(5)
            assert ">5<" in await region(reader)
        assert page.output_queue.empty()
        await page.say(READY)
        assert ">5<" in await region(page)
    assert len(rendered) == 2


async def test_the_same_region_is_not_sent_again(application: Any, group: Group, rendered: list[str]) -> None:
    async with opened(application, await logged_in("ann"), f"{PAGE}?q=nobody") as page:
        await lag_becomes(2)
        await region(page)
        await page.say(READY)
        await lag_becomes(3)
        async with asyncio.timeout(60):
            while len(rendered) < 2:  # noqa: ASYNC110 - nothing comes that could be waited for
                await asyncio.sleep(0.01)
        async with opened(application, await logged_in("bob"), f"{PAGE}?q=nobody") as other:
            await lag_becomes(4)
            await region(other)
        assert page.output_queue.empty()


async def test_people_with_other_roles_are_served_apart(application: Any, group: Group, rendered: list[str]) -> None:
    other = await sync_to_async(Cluster.objects.create)(name="other", namesrv="10.0.0.2:9876")
    scopes = [("all", None), ("of local", group.cluster), ("of other", other)]
    sessions = {name: await logged_in(name, Role.VIEWER, on) for name, on in scopes}
    wanted = {"subscriptions": [{"cluster": "local"}]}
    async with (
        opened(application, sessions["all"], "/", **wanted) as sees_all,
        opened(application, sessions["of local"], "/", **wanted) as sees_local,
    ):
        await lag_becomes(2)
        everything, local = await region(sees_all), await region(sees_local)
    assert "other" in everything
    assert "other" not in local
    assert len(rendered) == 2


async def test_each_language_is_served_apart(application: Any, group: Group) -> None:
    async with (
        opened(application, await logged_in("ann")) as english,
        opened(application, await logged_in("bob"), language="zh-hans") as chinese,
    ):
        await lag_becomes(2)
        texts = await region(english), await region(chinese)
    assert ["堆积量" in text for text in texts] == [False, True]


async def test_a_page_in_another_language_than_the_person_now_reads_fetches_by_itself(
    application: Any, group: Group
) -> None:
    session = await logged_in("ann")

    def choose_chinese() -> None:
        found = Client()
        found.cookies[project.SESSION_COOKIE_NAME] = session
        store = found.session
        store["language"] = "zh-hans"
        store.save()

    await sync_to_async(choose_chinese)()
    async with opened(application, session) as page:
        await lag_becomes(2)
        assert await page.heard() == {"type": "changed", "changes": []}


NOT_PUSHED = {
    "a page that is not there": "/clusters/local/groups/nobody/",
    "a cluster that is not there": "/clusters/nowhere/groups/",
    "no page with a region": "/audit/",
    "not an address": "/%zz?&&=",
    "the log-out": "/logout/",
}


@pytest.mark.parametrize("page", NOT_PUSHED.values(), ids=NOT_PUSHED)
async def test_what_is_no_region_is_not_pushed(application: Any, group: Group, page: str) -> None:
    async with opened(application, await logged_in("ann"), page) as socket:
        await lag_becomes(2)
        assert await socket.heard() == {"type": "changed", "changes": []}


async def test_a_region_beyond_the_limit_is_fetched(
    application: Any, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regions, "REGION_BYTES_MAX", 100)
    async with opened(application, await logged_in("ann")) as page:
        await lag_becomes(2)
        assert await page.heard() == {"type": "changed", "changes": []}


async def test_a_page_of_a_cluster_that_one_may_not_see_any_more_gets_no_region(application: Any, group: Group) -> None:
    async with (
        opened(application, await logged_in("ann")) as loser,
        opened(application, await logged_in("bob")) as keeper,
    ):
        await lag_becomes(2)
        for page in (loser, keeper):
            assert ">2<" in await region(page)
            await page.say(READY)

        def take_the_role() -> None:
            Role_.objects.get(name=Role.VIEWER).user_set.remove(get_user_model().objects.get(username="ann"))

        await sync_to_async(take_the_role)()
        await lag_becomes(3)
        assert ">3<" in await region(keeper)
        assert await loser.close_code() == viewers.CLOSE_NOT_ALLOWED


def log_out(session: str) -> None:
    Session.objects.filter(session_key=session).delete()


def deactivate(session: str) -> None:
    get_user_model().objects.filter(username="ann").update(is_active=False)


@pytest.mark.parametrize(
    ("happens", "code"), [(log_out, viewers.CLOSE_NOT_LOGGED_IN), (deactivate, viewers.CLOSE_NOT_ALLOWED)]
)
async def test_who_may_not_look_any_more_is_closed_instead(
    application: Any, group: Group, happens: Any, code: int
) -> None:
    session = await logged_in("ann")
    async with (
        opened(application, session) as gone,
        opened(application, await logged_in("bob")) as there,
    ):
        await sync_to_async(happens)(session)
        await lag_becomes(2)
        assert ">2<" in await region(there)
        assert await gone.close_code() == code


async def test_changes_while_a_region_is_rendered_are_in_the_next_one(
    application: Any, group: Group, monkeypatch: pytest.MonkeyPatch, rendered: list[str]
) -> None:
    """However many there are: one is rendered at a time, and one more."""
    is_rendering, may_go_on = asyncio.Event(), asyncio.Event()
    render = regions.Regions.rendered

    async def slowly(*args: Any) -> bytes | None:
        frame = await render(*args)
        is_rendering.set()
        await may_go_on.wait()
        return frame

    monkeypatch.setattr(regions.Regions, "rendered", slowly)
    async with opened(application, await logged_in("ann")) as page:
        await lag_becomes(2)
        await is_rendering.wait()
        for lag in range(3, 20):
            await lag_becomes(lag)
        may_go_on.set()
        assert ">2<" in await region(page)
        await page.say(READY)
        assert ">19<" in await region(page)
    assert len(rendered) == 2


async def test_what_was_rendered_meanwhile_is_not_pushed_to_who_may_not_look_any_more(
    application: Any, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_rendering, may_go_on = asyncio.Event(), asyncio.Event()
    render = regions.Regions.rendered

    async def slowly(*args: Any) -> bytes | None:
        frame = await render(*args)
        is_rendering.set()
        await may_go_on.wait()
        return frame

    monkeypatch.setattr(regions.Regions, "rendered", slowly)
    gone = await logged_in("gone")
    async with (
        opened(application, gone) as left,
        opened(application, await logged_in("bob")) as loser,
        opened(application, await logged_in("cleo")) as there,
    ):
        await lag_becomes(2)
        await is_rendering.wait()

        def change() -> None:
            log_out(gone)
            Role_.objects.get(name=Role.VIEWER).user_set.remove(get_user_model().objects.get(username="bob"))

        await sync_to_async(change)()
        may_go_on.set()
        assert ">2<" in await region(there)
        assert await left.close_code() == viewers.CLOSE_NOT_LOGGED_IN
        assert await loser.close_code() == viewers.CLOSE_NOT_ALLOWED


async def test_who_lost_one_of_the_clusters_that_a_page_shows_hears_nothing_more(group: Group) -> None:
    """Pages without an address are told what changed; heartbeats come between, and say nothing."""

    def make() -> tuple[str, AbstractUser]:
        Cluster.objects.create(name="other", namesrv="10.0.0.2:9876")
        ann = make_person("ann", Role.VIEWER, Cluster.objects.get(name="local"))
        ClusterRole.objects.create(person=ann, cluster=Cluster.objects.get(name="other"), role=Role.VIEWER)
        return session_of(ann), ann

    application = live_application(heartbeat_s=3600, changed_interval_s=0, judged_for_s=0)
    session, ann = await sync_to_async(make)()
    both = [{"cluster": "local"}, {"cluster": "other"}]
    async with opened(application, session, "", is_ready=False, subscriptions=both) as page:
        await lag_becomes(2)
        assert [one["kind"] for one in (await page.heard())["changes"]] == ["groups"]
        await sync_to_async(ClusterRole.objects.filter(person=ann, cluster__name="other").delete)()
        await lag_becomes(3)
        assert await page.close_code() == viewers.CLOSE_NOT_ALLOWED


async def test_page_that_cannot_be_judged_is_told_to_fetch_and_not_what_changed(
    application: Any, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any) -> Any:
        raise DatabaseError("away")

    async with opened(application, await logged_in("ann"), "", is_ready=False) as page:
        monkeypatch.setattr(pushes, "_judged", refuse)
        await lag_becomes(2)
        assert await page.heard() == {"type": "changed", "changes": []}


@pytest.mark.parametrize("error", [DatabaseError("away"), RuntimeError("a mistake")], ids=["database", "mistake"])
async def test_where_rendering_fails_the_page_fetches_and_the_next_change_is_pushed(
    application: Any, group: Group, monkeypatch: pytest.MonkeyPatch, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    render, errors = regions.Regions.rendered, [error]

    async def fails_once(*args: Any) -> bytes | None:
        if errors:
            raise errors.pop()
        return await render(*args)

    monkeypatch.setattr(regions.Regions, "rendered", fails_once)
    async with opened(application, await logged_in("ann")) as page:
        await lag_becomes(2)
        assert await page.heard() == {"type": "changed", "changes": []}
        await lag_becomes(3)
        assert ">3<" in await region(page)
    assert "the region of 1 open pages was not rendered" in caplog.text


async def test_the_heartbeat_goes_on_between_regions(group: Group) -> None:
    application = live_application(heartbeat_s=0.05)
    async with opened(application, await logged_in("ann"), is_ready=False) as page:
        assert await page.heard() == {"type": "heartbeat"}


async def test_idle_pages_ask_the_database_nothing(application: Any, group: Group, asked: list[str]) -> None:
    names = (f"viewer {number}" for number in itertools.count())
    async with (
        opened(application, await logged_in(next(names))) as one,
        opened(application, await logged_in(next(names))) as other,
    ):
        asked.clear()
        assert await one.receive_nothing(timeout=0.5)
        assert await other.receive_nothing(timeout=0.5)
        assert asked == []


async def test_ready_before_subscribe_is_refused(application: Any, group: Group) -> None:
    session = await logged_in("ann")
    cookie = (b"cookie", f"{project.SESSION_COOKIE_NAME}={session}".encode())
    socket = PageSocket(application, "/ws/", headers=[HOST, ORIGIN, cookie])
    await socket.connect()
    await socket.say(READY)
    assert await socket.close_code() == 4400
