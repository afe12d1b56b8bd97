"""The websocket of an open page, through authentication and routing: what it hears, and when it is closed."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.layers import channel_layers, get_channel_layer
from django.conf import settings as project
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group
from mqadmin.live import changes, events, sockets, viewers
from mqadmin.live.events import Change, ChangeKind
from mqadmin.live.heartbeats import HEARTBEAT_S
from mqadmin.live.routing import live_application
from mqadmin.live.subscriptions import MESSAGE_CHARS_MAX, SUBSCRIPTIONS_MAX
from mqadmin.people import access
from mqadmin.people.roles import Role
from tests.support.page_socket import PageSocket
from tests.support.people import make_person
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.django_db(transaction=True)

ORIGIN = (b"origin", b"http://localhost")
BILLING = {"cluster": "local", "group": "billing"}
QUICK_HEARTBEAT_S = 0.05


@pytest.fixture
def session() -> str:
    """The session key of ann, who is logged in."""
    cluster = Cluster.objects.create(name="local", namesrv="127.0.0.1:9876")
    for name in ("billing", "%RETRY|odd_1"):
        Group.objects.create(cluster=cluster, name=name, seen_at=timezone.now())
    user = make_person("ann", Role.VIEWER, password="correct horse battery")
    client = Client()
    client.force_login(user)
    return client.cookies[project.SESSION_COOKIE_NAME].value


def opened(session: str = "", origin: tuple[bytes, bytes] = ORIGIN, **limits: float) -> PageSocket:
    cookie = (b"cookie", f"{project.SESSION_COOKIE_NAME}={session}".encode())
    application = live_application(**{"changed_interval_s": 0.05, **limits})
    return PageSocket(application, "/ws/", headers=[origin, cookie])


async def subscribe(socket: PageSocket, *subscriptions: dict[str, Any]) -> None:
    await socket.say(json.dumps({"type": "subscribe", "subscriptions": subscriptions}))


async def subscribed(session: str, *subscriptions: dict[str, Any], **limits: float) -> PageSocket:
    socket = opened(session, **limits)
    await socket.connect()
    await subscribe(socket, *subscriptions)
    assert (await socket.heard())["type"] == "subscribed"
    return socket


@pytest.fixture
async def page(session: str) -> AsyncIterator[PageSocket]:
    socket = await subscribed(session, BILLING)
    yield socket
    await socket.disconnect()


async def publish(*changes: Change) -> None:
    await sync_to_async(events.publish)(changes)


def of_billing(revision: int, kind: ChangeKind = ChangeKind.GROUP) -> Change:
    return Change(kind, "local", "billing", revision)


async def test_page_learns_how_often_the_heartbeat_comes(session: str) -> None:
    socket = opened(session)
    await socket.connect()
    await subscribe(socket, {"cluster": "local"})
    subscribed = await socket.heard()
    assert (subscribed["type"], subscribed["heartbeat_s"]) == ("subscribed", HEARTBEAT_S)
    await socket.disconnect()


async def test_page_learns_whether_it_changed_since_it_was_loaded(session: str) -> None:
    async def revision() -> str:
        socket = opened(session)
        await socket.connect()
        await subscribe(socket, BILLING)
        heard = await socket.heard()
        await socket.disconnect()
        return str(heard["revision"])

    client = Client()
    client.cookies[project.SESSION_COOKIE_NAME] = session
    page = (await sync_to_async(client.get)("/clusters/local/groups/billing/")).content.decode()
    assert f'data-revision="{await revision()}"' in page
    await publish(of_billing(1))
    assert f'data-revision="{await revision()}"' not in page


async def test_page_hears_what_changed(page: PageSocket) -> None:
    await publish(of_billing(7))
    assert await page.heard() == {
        "type": "changed",
        "changes": [{"kind": "group", "cluster": "local", "group": "billing", "revision": 7}],
    }


@pytest.mark.slow
async def test_changes_in_quick_succession_come_together_and_the_latest_counts(session: str) -> None:
    page = await subscribed(session, BILLING, changed_interval_s=2)
    loop, layer, group = asyncio.get_running_loop(), get_channel_layer(), events.live_group("local", "billing")
    began_s = loop.time()
    await publish(of_billing(1))
    await page.heard()

    async def send(*changes: Change) -> None:
        sent = [change.as_event() for change in changes]
        await layer.group_send(group, {"type": events.EVENT_TYPE, "changes": sent})

    # Together, so that the interval cannot end in between, however busy the machine is.
    await asyncio.gather(*(send(of_billing(each), of_billing(each, ChangeKind.REBALANCE)) for each in (2, 3, 4)))
    heard = json.loads((await page.receive_output())["text"])
    assert loop.time() - began_s >= 2
    assert [(change["kind"], change["revision"]) for change in heard["changes"]] == [("group", 4), ("rebalance", 4)]
    assert await page.receive_nothing()
    await page.disconnect()


async def test_page_hears_nothing_of_other_groups_and_clusters(page: PageSocket) -> None:
    names = (f"mail-{number}" for number in itertools.count())
    mail = next(name for name in names if events.live_group("local", name) == events.live_group("local", "billing"))
    await publish(Change(ChangeKind.GROUP, "local", mail), Change(ChangeKind.GROUP, "prod", "billing"))
    await publish(Change(ChangeKind.GROUPS, "local"))
    assert await page.receive_nothing()


async def test_cluster_page_hears_of_the_cluster(session: str) -> None:
    socket = await subscribed(session, {"cluster": "local"})
    await publish(of_billing(1), Change(ChangeKind.GROUPS, "local"))
    heard = await socket.heard()
    assert [change["kind"] for change in heard["changes"]] == ["groups"]
    await socket.disconnect()


async def test_page_hears_only_the_kinds_that_it_shows(session: str) -> None:
    socket = await subscribed(session, {"cluster": "local", "kinds": ["topics"]})
    await publish(Change(ChangeKind.GROUPS, "local"), Change(ChangeKind.CLUSTER, "local"))
    assert await socket.receive_nothing()
    await publish(Change(ChangeKind.TOPICS, "local"))
    assert (await socket.heard())["type"] == "changed"
    await socket.disconnect()


async def test_one_socket_hears_of_all_that_its_page_shows(session: str) -> None:
    names = [f"c{number:02}" for number in range(20)]
    await sync_to_async(Cluster.objects.bulk_create)(Cluster(name=name, namesrv="10.0.0.1:9876") for name in names)
    socket = await subscribed(session, BILLING, *({"cluster": name} for name in names))
    await publish(Change(ChangeKind.CLUSTER, "c00"), Change(ChangeKind.GROUPS, "c19"), of_billing(1))
    heard = {(change["cluster"], change["group"]) for change in (await socket.heard())["changes"]}
    while len(heard) < 3:
        heard |= {(change["cluster"], change["group"]) for change in (await socket.heard())["changes"]}
    assert heard == {("c00", ""), ("c19", ""), ("local", "billing")}
    await socket.disconnect()


async def test_idle_socket_says_that_it_is_alive(session: str) -> None:
    socket = await subscribed(session, {"cluster": "local"}, heartbeat_s=QUICK_HEARTBEAT_S)
    assert await socket.heard() == {"type": "heartbeat"}
    assert await socket.heard() == {"type": "heartbeat"}
    await socket.disconnect()


INVALID_MESSAGES = {
    "not JSON": "not even json",
    "another type": json.dumps({"type": "hello"}),
    "nothing subscribed": json.dumps({"type": "subscribe", "subscriptions": []}),
    "too many": json.dumps({"type": "subscribe", "subscriptions": [BILLING] * (SUBSCRIPTIONS_MAX + 1)}),
    "a kind that does not exist": json.dumps({"type": "subscribe", "subscriptions": [{**BILLING, "kinds": ["x"]}]}),
    "a name too long": json.dumps({"type": "subscribe", "subscriptions": [{"cluster": "x" * 256}]}),
    "too long": " " * MESSAGE_CHARS_MAX + json.dumps({"type": "subscribe", "subscriptions": [BILLING]}),
    "half a character": '{"type": "subscribe", "subscriptions": [{"cluster": "\ud800"}]}',
}


@pytest.mark.parametrize("message", INVALID_MESSAGES.values(), ids=INVALID_MESSAGES)
async def test_page_that_sends_anything_else_is_closed(session: str, message: str) -> None:
    socket = opened(session)
    await socket.connect()
    await socket.say(message)
    assert await socket.close_code() == sockets.CLOSE_INVALID_MESSAGE


async def test_page_subscribes_once(page: PageSocket) -> None:
    await subscribe(page, {"cluster": "local"})
    assert await page.close_code() == sockets.CLOSE_INVALID_MESSAGE


async def test_page_that_never_subscribes_is_closed(session: str) -> None:
    socket = opened(session, subscribe_within_s=0.05)
    await socket.connect()
    assert await socket.close_code() == sockets.CLOSE_INVALID_MESSAGE


async def test_page_has_subscribed_in_time_however_long_the_server_takes_for_it(
    session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_s, look_up = 0.05, access.visible_clusters

    def visible_clusters(user: Any) -> Any:
        time.sleep(4 * limit_s)  # a busy database
        return look_up(user)

    monkeypatch.setattr("mqadmin.people.access.visible_clusters", visible_clusters)
    socket = await subscribed(session, BILLING, subscribe_within_s=limit_s)
    await socket.disconnect()


@pytest.mark.parametrize(
    "unknown",
    [{"cluster": "nowhere"}, {"cluster": "local", "group": "nobody"}, {"cluster": "nowhere", "group": "billing"}],
    ids=["cluster", "group", "group of an unknown cluster"],
)
async def test_page_of_a_thing_that_is_not_there_is_told_so(session: str, unknown: dict[str, Any]) -> None:
    socket = opened(session)
    await socket.connect()
    await subscribe(socket, BILLING, unknown)
    assert await socket.close_code() == sockets.CLOSE_NOT_FOUND


async def test_group_of_an_odd_name_has_a_socket(session: str) -> None:
    socket = await subscribed(session, {"cluster": "local", "group": "%RETRY|odd_1"})
    await socket.disconnect()


async def test_stranger_hears_nothing(session: str) -> None:
    socket = opened("made up")
    await socket.connect()
    assert await socket.close_code() == viewers.CLOSE_NOT_LOGGED_IN


async def test_page_of_another_site_is_refused(session: str) -> None:
    socket = opened(session, origin=(b"origin", b"http://evil.example"))
    assert not await socket.connect()


def log_out(session: str) -> None:
    Session.objects.filter(session_key=session).delete()


def let_the_session_expire(session: str) -> None:
    Session.objects.filter(session_key=session).update(expire_date=timezone.now() - timedelta(seconds=1))


def change_the_password(session: str) -> None:
    ann = get_user_model().objects.get()
    ann.set_password("another horse battery")
    ann.save()


def deactivate(session: str) -> None:
    get_user_model().objects.update(is_active=False)


def delete(session: str) -> None:
    get_user_model().objects.all().delete()


@pytest.mark.parametrize(
    ("happens", "code"),
    [
        (log_out, viewers.CLOSE_NOT_LOGGED_IN),
        (let_the_session_expire, viewers.CLOSE_NOT_LOGGED_IN),
        (change_the_password, viewers.CLOSE_NOT_LOGGED_IN),
        (deactivate, viewers.CLOSE_NOT_ALLOWED),
        (delete, viewers.CLOSE_NOT_ALLOWED),
    ],
)
async def test_open_page_of_somebody_who_may_not_look_any_more_is_closed(session: str, happens: Any, code: int) -> None:
    socket = await subscribed(session, BILLING, heartbeat_s=QUICK_HEARTBEAT_S)
    await sync_to_async(happens)(session)
    assert await closed_after_heartbeats(socket) == code


async def closed_after_heartbeats(socket: PageSocket) -> int:
    while True:
        answer = await socket.receive_output()
        if answer["type"] == "websocket.close":
            return int(answer["code"])
        assert json.loads(answer["text"]) == {"type": "heartbeat"}


def test_a_thousand_viewers_are_checked_with_four_queries(session: str) -> None:
    ann = viewers.viewer_of(session, get_user_model().objects.get())
    gone = [viewers.Viewer(f"session {number}", number, "hash") for number in range(10_000, 10_999)]
    with CaptureQueriesContext(connection) as asked:
        codes = viewers.close_codes([ann, *gone])
    assert len(asked) == 4
    assert codes == dict.fromkeys(gone, viewers.CLOSE_NOT_ALLOWED)


async def test_sockets_of_one_process_are_checked_together(session: str) -> None:
    application = live_application(heartbeat_s=QUICK_HEARTBEAT_S)
    cookie = (b"cookie", f"{project.SESSION_COOKIE_NAME}={session}".encode())
    pages = [PageSocket(application, "/ws/", headers=[ORIGIN, cookie]) for _ in range(5)]
    for socket in pages:
        await socket.connect()
        await subscribe(socket, BILLING)
        await socket.heard()
    asked = CaptureQueriesContext(connection)
    await sync_to_async(asked.__enter__)()
    for _ in range(3):
        for socket in pages:
            assert await socket.heard() == {"type": "heartbeat"}
    await sync_to_async(asked.__exit__)(None, None, None)
    # Two for each heartbeat; a fourth may have begun.
    assert len(asked) <= 2 * 4
    for socket in pages:
        await socket.disconnect()


async def test_page_is_told_after_the_transaction_and_not_of_one_that_failed(page: PageSocket) -> None:
    def change(revision: int, *, fails: bool) -> None:
        with transaction.atomic():
            events.publish_after_commit([of_billing(revision)])
            if fails:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await sync_to_async(change)(1, fails=True)
    await sync_to_async(change)(2, fails=False)
    heard = await page.heard()
    assert heard["changes"][0]["revision"] == 2


@pytest.fixture
def redis_layer(tmp_path: Path, settings: Any) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as server:
        settings.CHANNEL_LAYERS = {
            "default": {
                "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
                "CONFIG": {"hosts": [server.url]},
            }
        }
        channel_layers.backends.clear()
        yield server


async def test_page_hears_on_after_an_event_that_cannot_be_read(
    page: PageSocket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(changes, "LISTEN_AGAIN_S", 0.0)
    await get_channel_layer().group_send(events.live_group("local", "billing"), {"type": events.EVENT_TYPE})
    await publish(of_billing(9))
    assert (await page.heard())["changes"][0]["revision"] == 9
    assert "an event for open pages cannot be read" in caplog.text


@pytest.mark.redis
async def test_events_pass_through_a_real_redis(redis_layer: RedisServer, session: str) -> None:
    socket = await subscribed(session, BILLING)
    await asyncio.to_thread(events.publish, [of_billing(9)])
    assert (await socket.heard())["changes"][0]["revision"] == 9
    await socket.disconnect()


@pytest.mark.redis
def test_events_without_redis_are_a_warning(redis_layer: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    redis_layer.stop()
    events.publish([of_billing(1)])
    assert "were not sent to the open pages" in caplog.text
