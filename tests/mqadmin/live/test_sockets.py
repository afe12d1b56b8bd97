"""The websocket of an open page, through the whole ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.layers import channel_layers
from django.conf import settings as project
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import Client
from django.utils import timezone

from mqadmin.asgi import application
from mqadmin.clusters.models import Cluster, Group
from mqadmin.live import events, sockets
from mqadmin.live.events import Change, ChangeKind
from tests.support.page_socket import PageSocket
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.django_db(transaction=True)

ORIGIN = (b"origin", b"http://localhost")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets.LiveSocket, "changed_interval_s", 0.05)


@pytest.fixture
def session() -> str:
    cluster = Cluster.objects.create(name="local", namesrv="127.0.0.1:9876")
    for name in ("billing", "%RETRY|odd_1"):
        Group.objects.create(cluster=cluster, name=name, seen_at=timezone.now())
    user = get_user_model().objects.create_user("ann", password="correct horse battery")
    client = Client()
    client.force_login(user)
    return client.cookies[project.SESSION_COOKIE_NAME].value


def opened(path: str, session: str = "", origin: tuple[bytes, bytes] = ORIGIN) -> PageSocket:
    cookie = (b"cookie", f"{project.SESSION_COOKIE_NAME}={session}".encode())
    return PageSocket(application, path, headers=[origin, cookie])


@pytest.fixture
async def page(session: str) -> AsyncIterator[PageSocket]:
    socket = opened("/ws/clusters/local/groups/billing/", session)
    await socket.connect()
    assert await socket.heard() == {"type": "hello", "heartbeat_s": sockets.HEARTBEAT_S}
    yield socket
    await socket.disconnect()


async def tell(*changes: Change) -> None:
    await sync_to_async(events.tell)(changes)


def of_billing(revision: int, kind: ChangeKind = ChangeKind.GROUP) -> Change:
    return Change(kind, "local", "billing", revision)


async def test_page_hears_what_changed(page: PageSocket) -> None:
    await tell(of_billing(7))
    assert await page.heard() == {
        "type": "changed",
        "changes": [{"kind": "group", "cluster": "local", "group": "billing", "revision": 7}],
    }


async def test_changes_in_quick_succession_come_together_and_the_latest_counts(page: PageSocket) -> None:
    await tell(of_billing(1))
    await page.heard()
    for revision in (2, 3, 4):
        await tell(of_billing(revision), of_billing(revision, ChangeKind.REBALANCE))
    heard = await page.heard()
    assert [(change["kind"], change["revision"]) for change in heard["changes"]] == [("group", 4), ("rebalance", 4)]
    assert await page.receive_nothing()


async def test_page_hears_nothing_of_other_groups_and_clusters(
    page: PageSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "GROUP_BUCKETS", 1)
    await tell(Change(ChangeKind.GROUP, "local", "mail"), Change(ChangeKind.GROUP, "prod", "billing"))
    await tell(Change(ChangeKind.GROUPS, "local"))
    assert await page.receive_nothing()


async def test_cluster_page_hears_of_the_cluster(session: str) -> None:
    socket = opened("/ws/clusters/local/", session)
    await socket.connect()
    await socket.heard()
    await tell(of_billing(1), Change(ChangeKind.GROUPS, "local"))
    heard = await socket.heard()
    assert [change["kind"] for change in heard["changes"]] == ["groups"]
    await socket.disconnect()


async def test_quiet_socket_says_that_it_is_alive(session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets.LiveSocket, "heartbeat_s", 0.05)
    socket = opened("/ws/clusters/local/", session)
    await socket.connect()
    await socket.heard()
    assert await socket.heard() == {"type": "heartbeat"}
    await socket.disconnect()


async def test_what_a_page_says_is_ignored(page: PageSocket) -> None:
    await page.say("not even json")
    await tell(of_billing(1))
    assert (await page.heard())["type"] == "changed"


@pytest.mark.parametrize(
    "path",
    ["/ws/clusters/nowhere/", "/ws/clusters/local/groups/nobody/", "/ws/clusters/nowhere/groups/billing/"],
)
async def test_page_of_a_thing_that_is_not_there_is_told_so(session: str, path: str) -> None:
    socket = opened(path, session)
    await socket.connect()
    assert await socket.close_code() == sockets.CLOSE_NOT_FOUND


async def test_group_of_an_odd_name_has_a_socket(session: str) -> None:
    socket = opened("/ws/clusters/local/groups/%RETRY|odd_1/", session)
    await socket.connect()
    assert (await socket.heard())["type"] == "hello"
    await socket.disconnect()


async def test_stranger_hears_nothing(session: str) -> None:
    socket = opened("/ws/clusters/local/", session="made up")
    await socket.connect()
    assert await socket.close_code() == sockets.CLOSE_NOT_LOGGED_IN


async def test_page_of_another_site_is_refused(session: str) -> None:
    socket = opened("/ws/clusters/local/", session, origin=(b"origin", b"http://evil.example"))
    assert not await socket.connect()


async def test_page_is_told_after_the_transaction_and_not_of_one_that_failed(page: PageSocket) -> None:
    def change(revision: int, *, fails: bool) -> None:
        with transaction.atomic():
            events.tell_after_commit([of_billing(revision)])
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


@pytest.mark.redis
async def test_events_pass_through_a_real_redis(redis_layer: RedisServer, session: str) -> None:
    socket = opened("/ws/clusters/local/groups/billing/", session)
    await socket.connect()
    await socket.heard()
    await asyncio.to_thread(events.tell, [of_billing(9)])
    assert (await socket.heard())["changes"][0]["revision"] == 9
    await socket.disconnect()


@pytest.mark.redis
def test_events_without_redis_are_a_warning(redis_layer: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    redis_layer.stop()
    events.tell([of_billing(1)])
    assert "open pages were not told" in caplog.text
