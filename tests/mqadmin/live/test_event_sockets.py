"""The websocket of scripts: who may open it, what it sends, how a script comes back, and when it is closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.events import recording
from mqadmin.events.kinds import EventFilter, EventKind, NewEvent
from mqadmin.events.models import Event
from mqadmin.live import bounded_sockets, event_feed, event_sockets, viewers
from mqadmin.live.event_feed import EventFeed, FeedEvent
from mqadmin.live.routing import live_application
from mqadmin.people.roles import Role
from mqadmin.tokens import guesses
from mqadmin.tokens.models import ApiToken, digest_of, new_secret
from tests.support.page_socket import PageSocket
from tests.support.people import make_person

pytestmark = pytest.mark.django_db(transaction=True)

QUICK_S = 0.05


@pytest.fixture
def secret() -> str:
    """Of a token for the cluster prod; there is another one, test."""
    for name in ("prod", "test"):
        Cluster.objects.create(name=name, namesrv="127.0.0.1:9876")
    return make_token(["prod"])


def make_token(clusters: list[str], name: str = "script", **changes: Any) -> str:
    secret = new_secret()
    person = make_person(f"ann-{name}", Role.VIEWER, password="correct horse battery")
    fields = {"expires_at": timezone.now() + timedelta(days=1)} | changes
    ApiToken.objects.create(
        person=person, name=name, digest=digest_of(secret), role="viewer", clusters=clusters, **fields
    )
    return secret


def opened(secret: str, application: Any = None, **limits: Any) -> PageSocket:
    headers = [(b"authorization", f"Bearer {secret}".encode())]
    return PageSocket(application or live_application(**limits), "/ws/events", headers=headers)


async def subscribed(socket: PageSocket, **wanted: Any) -> Any:
    await socket.connect()
    await socket.say(json.dumps({"type": "subscribe", **wanted}))
    heard = await socket.heard()
    assert heard["type"] == "subscribed", heard
    return heard


def happen(*groups: str, kind: EventKind = EventKind.VERDICT, cluster: str = "prod", filler: str = "") -> None:
    recording.record([NewEvent(kind, cluster, group, timezone.now(), {"filler": filler}) for group in groups])


async def happens(*groups: str, **what: Any) -> None:
    await sync_to_async(happen)(*groups, **what)


async def events(socket: PageSocket, count: int) -> list[Any]:
    found = []
    while len(found) < count:
        heard = await socket.heard()
        if heard["type"] != "heartbeat":
            assert heard["type"] == "event", heard
            found.append(heard)
    return found


async def test_script_hears_what_happens_from_now_on_in_order(secret: str) -> None:
    await happens("before")
    socket = opened(secret)
    await subscribed(socket)
    await happens("billing", "mail")
    await happens("billing", kind=EventKind.REBALANCE)
    heard = await events(socket, 3)
    assert [(one["kind"], one["cluster"], one["group"]) for one in heard] == [
        ("verdict", "prod", "billing"),
        ("verdict", "prod", "mail"),
        ("rebalance", "prod", "billing"),
    ]
    assert [one["id"] for one in heard] == sorted({one["id"] for one in heard})
    assert heard[0].keys() == {"type", "id", "at", "kind", "cluster", "group", "data"}
    await socket.disconnect()


async def test_script_that_was_away_goes_on_after_its_last_event(secret: str) -> None:
    await happens("a", "b", "c", "d")
    first = await sync_to_async(Event.objects.order_by("pk").first)()
    socket = opened(secret)
    await subscribed(socket, after=first.pk)
    await happens("e")
    assert [one["group"] for one in await events(socket, 4)] == ["b", "c", "d", "e"]
    await socket.disconnect()


async def test_script_catches_up_over_pages_while_more_happens(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read from the database and what comes by the feed meet without a gap and without a double."""
    monkeypatch.setattr(event_feed, "PAGE_ROWS", 3)
    monkeypatch.setattr(event_sockets, "PAGE_ROWS", 3)
    application = live_application(feed=EventFeed(10, feed_max=4))
    await happens(*(f"g{number:02}" for number in range(20)))
    oldest = await sync_to_async(Event.objects.order_by("pk").first)()
    socket = opened(secret, application)
    await subscribed(socket, after=oldest.pk - 1)
    await happens("g20", "g21")
    assert [one["group"] for one in await events(socket, 22)] == [f"g{number:02}" for number in range(22)]
    await socket.disconnect()


async def test_script_is_told_of_a_gap_and_goes_on_with_the_oldest(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "EVENTS_KEPT", 2)
    monkeypatch.setattr(recording, "TRIMMED_EVERY", 1)
    await happens("a", "b", "c", "d")
    oldest = await sync_to_async(Event.objects.order_by("pk").first)()
    socket = opened(secret)
    await subscribed(socket, after=oldest.pk - 2)
    gap = await socket.heard()
    assert (gap["type"], gap["oldest_id"]) == ("gap", oldest.pk)
    assert "/api/v1/clusters/{cluster}/groups" in gap["read"]
    assert [one["group"] for one in await events(socket, 2)] == ["c", "d"]
    await socket.disconnect()


async def test_number_that_was_never_given_is_a_gap(secret: str) -> None:
    await happens("a")
    socket = opened(secret)
    await subscribed(socket, after=10**9)
    assert (await socket.heard())["type"] == "gap"
    await happens("b")
    assert [one["group"] for one in await events(socket, 1)] == ["b"]
    await socket.disconnect()


async def test_script_hears_of_the_clusters_of_its_token_alone(secret: str) -> None:
    socket = opened(secret)
    await subscribed(socket)
    await happens("other", cluster="test")
    await happens("billing")
    assert [one["group"] for one in await events(socket, 1)] == ["billing"]
    oldest = await sync_to_async(Event.objects.order_by("pk").first)()
    again = opened(secret)
    await subscribed(again, after=oldest.pk - 1)
    assert [one["group"] for one in await events(again, 1)] == ["billing"]
    await socket.disconnect()
    await again.disconnect()


async def test_script_hears_what_it_asked_for_alone(secret: str) -> None:
    socket = opened(secret)
    await subscribed(socket, kinds=["verdict"], groups=["mail-*"], clusters=["prod"])
    await happens("billing", "mail-out")
    await happens("mail-out", kind=EventKind.REBALANCE)
    await happens("mail-in")
    assert [one["group"] for one in await events(socket, 2)] == ["mail-out", "mail-in"]
    await socket.disconnect()


async def test_heartbeat_says_up_to_which_event_all_was_sent(secret: str) -> None:
    socket = opened(secret, heartbeat_s=QUICK_S)
    await subscribed(socket, kinds=["rebalance"])
    await happens("billing")
    last = await sync_to_async(Event.objects.order_by("pk").last)()
    while (heard := await socket.heard())["last_id"] < last.pk:
        assert heard["type"] == "heartbeat"
    await socket.disconnect()


async def test_script_that_reads_too_slowly_is_closed_and_resumes(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reader takes nothing: the feed goes on, and forgets what the socket has not sent."""
    taken = asyncio.Event()
    send = event_sockets.EventSocket.send

    async def send_slowly(socket: Any, text_data: str) -> None:
        if '"event"' in text_data:
            await taken.wait()
        await send(socket, text_data=text_data)

    monkeypatch.setattr(event_sockets.EventSocket, "send", send_slowly)
    feed = EventFeed(10, feed_max=3)
    socket = opened(secret, live_application(feed=feed))
    await subscribed(socket)
    for number in range(8):
        await happens(f"g{number}")
    async with asyncio.timeout(60):
        while feed.complete_after == 0 or feed.after(feed.complete_after, 9)[-1].group != "g7":  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)
    taken.set()
    heard = []
    while (answer := await socket.receive_output())["type"] == "websocket.send":
        heard.append(json.loads(answer["text"]))
    assert answer == {"type": "websocket.close", "code": bounded_sockets.CLOSE_TOO_SLOW}
    again = opened(secret)
    await subscribed(again, after=heard[-1]["id"])
    heard += await events(again, 8 - len(heard))
    assert [one["group"] for one in heard] == [f"g{number}" for number in range(8)]
    await again.disconnect()


async def test_reader_that_takes_nothing_at_all_is_given_up(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    send = event_sockets.EventSocket.send

    async def send_never(socket: Any, text_data: str) -> None:
        await (asyncio.Event().wait() if '"event"' in text_data else send(socket, text_data=text_data))

    monkeypatch.setattr(event_sockets.EventSocket, "send", send_never)
    socket = opened(secret, send_within_s=QUICK_S)
    await subscribed(socket)
    await happens("billing")
    assert await socket.close_code() == bounded_sockets.CLOSE_TOO_SLOW


INVALID = {
    "not JSON": "hello",
    "another type": json.dumps({"type": "unsubscribe"}),
    "something unknown": json.dumps({"type": "subscribe", "since": 1}),
    "a kind that is none": json.dumps({"type": "subscribe", "kinds": ["rain"]}),
    "a negative number": json.dumps({"type": "subscribe", "after": -1}),
    "too many names": json.dumps({"type": "subscribe", "groups": ["g"] * 101}),
}


@pytest.mark.parametrize("message", INVALID.values(), ids=INVALID)
async def test_message_that_cannot_be_read_is_answered_with_why(secret: str, message: str) -> None:
    socket = opened(secret)
    await socket.connect()
    await socket.say(message)
    assert (await socket.heard())["type"] == "error"
    assert await socket.close_code() == bounded_sockets.CLOSE_INVALID_MESSAGE


@pytest.mark.parametrize("cluster", ["test", "nowhere", "\0"])
async def test_cluster_that_the_token_is_not_for_is_not_there(secret: str, cluster: str) -> None:
    socket = opened(secret)
    await socket.connect()
    await socket.say(json.dumps({"type": "subscribe", "clusters": [cluster]}))
    assert await socket.close_code() == bounded_sockets.CLOSE_NOT_FOUND


async def test_script_without_a_valid_token_hears_nothing(secret: str) -> None:
    expired = await sync_to_async(make_token)(["prod"], "old", expires_at=timezone.now())
    for wrong in ("", "mqa_unknown", "\xff", expired):
        socket = opened(wrong)
        await socket.connect()
        assert await socket.close_code() == viewers.CLOSE_NOT_LOGGED_IN


async def test_guesses_are_counted_with_those_of_rest(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses.time, "time", lambda: 1_000_000_020.0)
    monkeypatch.setattr(guesses, "FAILURES_PER_MIN", 1)
    for wrong in ("mqa_guess", secret):
        socket = opened(wrong)
        await socket.connect()
        assert await socket.close_code() == viewers.CLOSE_NOT_LOGGED_IN


def revoke() -> None:
    ApiToken.objects.update(revoked_at=timezone.now())


def deactivate() -> None:
    for token in ApiToken.objects.select_related("person"):
        token.person.is_active = False
        token.person.save()


@pytest.mark.parametrize("happening", [revoke, deactivate])
async def test_socket_of_a_token_that_ended_is_closed(
    secret: str, happening: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_sockets, "TOKEN_CHECK_S", 0)
    socket = opened(secret, heartbeat_s=QUICK_S)
    await subscribed(socket)
    await sync_to_async(happening)()
    while (answer := await socket.receive_output())["type"] == "websocket.send":
        assert json.loads(answer["text"])["type"] == "heartbeat"
    assert answer["code"] == viewers.CLOSE_NOT_LOGGED_IN


def narrow() -> None:
    ApiToken.objects.update(clusters=["test"])


def once_read(happening: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Has this happen when a page of events was read, before any of it is sent; each check is due at once."""

    async def read(wanted: EventFilter, after: int) -> list[FeedEvent]:
        page = await event_feed.read_page(wanted, after)
        await sync_to_async(happening)()
        return page

    monkeypatch.setattr(event_sockets, "TOKEN_CHECK_S", 0)
    monkeypatch.setattr(event_sockets, "read_page", read)


@pytest.mark.parametrize("happening", [revoke, deactivate])
async def test_script_that_catches_up_hears_nothing_more_once_its_token_ended(
    secret: str, happening: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    await happens("a", "b")
    oldest = await sync_to_async(Event.objects.order_by("pk").first)()
    once_read(happening, monkeypatch)
    socket = opened(secret)
    await subscribed(socket, after=oldest.pk - 1)
    assert await socket.close_code() == viewers.CLOSE_NOT_LOGGED_IN


async def test_script_that_catches_up_hears_nothing_of_a_cluster_that_it_sees_no_longer(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await happens("a", "b")
    await happens("c", cluster="test")
    oldest = await sync_to_async(Event.objects.order_by("pk").first)()
    once_read(narrow, monkeypatch)
    socket = opened(secret)
    await subscribed(socket, after=oldest.pk - 1)
    await happens("d")
    await happens("e", cluster="test")
    assert [one["group"] for one in await events(socket, 1)] == ["e"]
    await socket.disconnect()


async def test_news_are_not_sent_to_a_token_that_ended(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_sockets, "TOKEN_CHECK_S", 0)
    socket = opened(secret)
    await subscribed(socket)
    await sync_to_async(revoke)()
    await happens("a")
    assert await socket.close_code() == viewers.CLOSE_NOT_LOGGED_IN


async def test_a_token_has_so_many_sockets_and_no_more(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "SOCKETS_PER_TOKEN_MAX", 2)
    application = live_application()
    both = [opened(secret, application) for _ in range(2)]
    for socket in both:
        await subscribed(socket)
    third = opened(secret, application)
    await third.connect()
    assert await third.close_code() == event_sockets.CLOSE_TOO_MANY
    await both[0].disconnect()
    fourth = opened(secret, application)
    await subscribed(fourth)
    for socket in (both[1], fourth):
        await socket.disconnect()


@pytest.mark.parametrize("where", [event_sockets, event_feed], ids=["while it begins", "while the feed starts"])
async def test_error_while_subscribing_takes_no_place_of_the_token(
    secret: str, where: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise OperationalError("database is locked")

    application = live_application()
    monkeypatch.setattr(event_feed, "SOCKETS_PER_TOKEN_MAX", 1)
    with monkeypatch.context() as failing:
        failing.setattr(where, "_window", fail)
        first = opened(secret, application)
        await first.connect()
        await first.say('{"type": "subscribe"}')
        with pytest.raises(OperationalError):
            await first.wait()
    second = opened(secret, application)
    await subscribed(second)
    await second.disconnect()


async def test_feed_reads_on_after_a_connection_that_was_lost(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """InterfaceError is no DatabaseError: a driver raises it where the connection is closed."""
    read_page, has_failed = event_feed.read_page, asyncio.Event()

    async def fail_once(*args: Any) -> Any:
        if has_failed.is_set():
            return await read_page(*args)
        has_failed.set()
        raise InterfaceError("connection already closed")

    socket = opened(secret, heartbeat_s=QUICK_S)
    await subscribed(socket)
    monkeypatch.setattr(event_feed, "read_page", fail_once)
    await happens("billing")
    assert [one["group"] for one in await events(socket, 1)] == ["billing"]
    assert has_failed.is_set()
    await socket.disconnect()


async def test_news_is_read_once_for_all_sockets(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    application = live_application()
    scripts = [opened(secret, application) for _ in range(10)]
    for socket in scripts:
        await subscribed(socket)
    read_rows, count = event_feed._listed, 0

    async def counted(rows: Any) -> Any:
        nonlocal count
        count += 1
        return await read_rows(rows)

    monkeypatch.setattr(event_feed, "_listed", counted)
    await happens("billing")
    for socket in scripts:
        await events(socket, 1)
    assert count == 1
    for socket in scripts:
        await socket.disconnect()
