"""Where may be posted, and what a server that answers slowly, much or elsewhere can do: nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_network
from typing import Any

import pytest

from mqadmin.alerts import posting
from mqadmin.alerts.posting import ANSWER_BYTES_MAX, Post, is_refused, post, target_of
from mqadmin.delivery import NotDelivered
from tests.mqadmin.alerts.conftest import Receiver
from tests.support.children import free_port

LOOPBACK = (ip_network("127.0.0.0/8"),)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "::1",
        "0.0.0.0",  # noqa: S104 - refused
        "::",
        "169.254.169.254",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "100.100.100.200",
        "192.0.0.192",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
    ],
)
def test_local_and_metadata_addresses_are_refused(address: str) -> None:
    assert is_refused(address, ())


@pytest.mark.parametrize(
    "address", ["10.0.0.8", "192.168.1.4", "172.16.3.3", "93.184.216.34", "2606:2800::1", "fd12::8"]
)
def test_public_and_private_addresses_are_not(address: str) -> None:
    assert not is_refused(address, ())


def test_a_network_that_is_allowed_is_not_refused_and_its_neighbours_are() -> None:
    assert not is_refused("127.0.0.1", (ip_network("127.0.0.1/32"),))
    assert not is_refused("::ffff:127.0.0.1", (ip_network("127.0.0.1/32"),))
    assert is_refused("127.0.0.2", (ip_network("127.0.0.1/32"),))
    assert is_refused("::1", (ip_network("127.0.0.1/32"),))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hook",
        "ftp://a/b",
        "file:///etc/passwd",
        "gopher://a/",
        "https://",
        "https://user:word@a/b",
        "https://user@a/b",
        "https://a/b c",
        "https://a/b\r\nX: y",
        "https://a:99999/",
        "https://a:b/",
        "https://a/é",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        target_of(url)


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_however_this_machine_is_written_nothing_is_posted(host: str, receiver: Receiver) -> None:
    with pytest.raises(NotDelivered) as caught:
        post(Post(f"http://{host}:{receiver.port}/key", b"{}"), ())
    assert not receiver.posts
    assert "key" not in str(caught.value)


def test_a_name_with_one_local_address_is_refused_and_looked_up_once(monkeypatch: Any) -> None:
    asked: list[str] = []

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, 1, 6, "", (one, port)) for one in ("93.184.216.34", "127.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(NotDelivered) as caught:
        post(Post("https://rebound.example/key", b"{}"), ())
    assert caught.value.is_for_good
    assert asked == ["rebound.example"]


def test_the_connection_goes_to_the_address_that_was_checked(receiver: Receiver, monkeypatch: Any) -> None:
    connected: list[tuple[str, int]] = []
    connect = socket.create_connection

    def create(address: tuple[str, int], **how: Any) -> socket.socket:
        connected.append(address)
        return connect(address, **how)

    monkeypatch.setattr(socket, "create_connection", create)
    post(Post(f"http://localhost:{receiver.port}/", b"{}"), (*LOOPBACK, ip_network("::1/128")))
    assert ("127.0.0.1", receiver.port) in connected
    assert not any(host == "localhost" for host, _port in connected)


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.answers = [(302, b"")]
    assert post(Post(receiver.url, b"{}"), LOOPBACK).status == 302
    assert len(receiver.posts) == 1


def test_of_a_long_answer_the_beginning_is_read(receiver: Receiver) -> None:
    receiver.answers = [(200, b"x" * (4 * ANSWER_BYTES_MAX))]
    assert len(post(Post(receiver.url, b"{}"), LOOPBACK).body) == ANSWER_BYTES_MAX


@pytest.fixture
def trickling() -> Iterator[int]:
    """A server that sends a byte of a header every now and then, for ever."""
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            connected, _ = listening.accept()
            with connected:
                connected.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
                while not ended.wait(0.02):
                    connected.sendall(b"x")

    thread = threading.Thread(target=serve)
    thread.start()
    yield listening.getsockname()[1]
    ended.set()
    # Where nobody came: on a busy machine the time may be over before.
    listening.shutdown(socket.SHUT_RDWR)
    thread.join()
    listening.close()


def test_a_server_that_trickles_is_cut_off(trickling: int) -> None:
    with pytest.raises(NotDelivered, match="gives no answer in time"):
        post(Post(f"http://127.0.0.1:{trickling}/", b"{}"), LOOPBACK, total_s=0.2)


def test_a_handshake_that_never_ends_is_cut_off() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NotDelivered, match="gives no answer in time"):
        post(Post(f"https://127.0.0.1:{silent.getsockname()[1]}/", b"{}"), LOOPBACK, total_s=0.2)


def test_nobody_listening_and_no_such_name_are_told_by_the_host(monkeypatch: Any) -> None:
    port = free_port()
    with pytest.raises(NotDelivered, match=r"^127\.0\.0\.1 cannot be reached: Connection refused$"):
        post(Post(f"http://127.0.0.1:{port}/key", b"{}"), LOOPBACK)

    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(NotDelivered, match=r"^nowhere\.example has no address$") as caught:
        post(Post("https://nowhere.example/key", b"{}"), LOOPBACK)
    assert not caught.value.is_for_good


def test_a_server_without_a_certificate_that_we_trust_gets_nothing(receiver: Receiver) -> None:
    with pytest.raises(NotDelivered):
        post(Post(receiver.url.replace("http://", "https://"), b"{}"), LOOPBACK)
    assert not receiver.posts


def test_bounds() -> None:
    assert posting.TOTAL_S <= 10
