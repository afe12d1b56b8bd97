"""Addresses behind which is something else: it answers slowly, half, in drops, or lies. By REST and on the page."""

from __future__ import annotations

import asyncio
import html
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from mqadmin.observing.gateway import gateway
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.route import BrokerData, ClusterInfo
from remoting.wire.codes import RequestCode
from tests.mqadmin.console.pages import text_of
from tests.support.raw_server import Behaviour, RawServer
from tests.support.topic_brokers import TopicBrokers

pytestmark = pytest.mark.django_db

HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
# As long as people wait for what never comes, many times over.
ANSWERS_WITHIN_S = 60.0
NAME = "<b>\u202eevil"


@pytest.fixture
def _quick_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """For those who never answer: nothing that a test waits for comes late."""
    monkeypatch.setattr(gateway, "REQUEST_TIMEOUT_S", 0.2)


def says(text: bytes, *, then: str) -> Behaviour:
    """Answers anything with the text, and then hangs up, or is silent."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(text)
        await writer.drain()
        if then == "is silent":
            await reader.read()

    return behave


async def in_drops(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Announces a frame, and sends a byte of it now and then, for ever."""
    writer.write((1000).to_bytes(4, "big"))
    while True:
        writer.write(b"\0")
        await writer.drain()
        await asyncio.sleep(0.05)


def frame(header: bytes, body: bytes = b"") -> bytes:
    return (4 + len(header) + len(body)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + body


OTHERS: dict[str, Behaviour] = {
    "never answers": says(b"", then="is silent"),
    "hangs up": says(b"", then="hangs up"),
    "speaks HTTP": says(HTTP, then="hangs up"),
    "half a frame": says((1000).to_bytes(4, "big") + b"\0" * 20, then="hangs up"),
    "half a frame, then silence": says((1000).to_bytes(4, "big") + b"\0" * 20, then="is silent"),
    "drops": in_drops,
    "announces 2 GiB": says((2**31 - 1).to_bytes(4, "big") + b"\0" * 64, then="is silent"),
    "announces less than a header": says((1).to_bytes(4, "big") + b"\0", then="is silent"),
    "no JSON": says(frame(b"{not JSON"), then="is silent"),
    "answers what nobody asked": says(
        frame(b'{"code":0,"opaque":987654321,"flag":1,"language":"JAVA","version":0}'), then="is silent"
    ),
}


def asked_by_rest(http: Client, namesrv: str) -> Any:
    body = {"arguments": {"cluster": "odd", "namesrv": namesrv}}
    return http.post("/api/v1/actions/add_cluster/preview", body, content_type="application/json")


def asked_on_the_page(http: Client, namesrv: str) -> Any:
    return http.get("/add-cluster/", {"cluster": "odd", "namesrv": namesrv})


@pytest.mark.usefixtures("_quick_requests")
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("asked", [asked_by_rest, asked_on_the_page], ids=["rest", "page"])
@pytest.mark.slow
def test_whatever_answers_is_named_and_nobody_waits_for_ever(
    http: Client, other: str, asked: Callable[[Client, str], Any]
) -> None:
    with RawServer(OTHERS[other]) as server:
        began_s = time.monotonic()
        answer = asked(http, server.address)
    assert time.monotonic() - began_s < ANSWERS_WITHIN_S
    assert answer.status_code == 200, answer.content
    words = " ".join(answer.json()["warnings"]) if asked is asked_by_rest else text_of(answer)
    assert f"The name server {server.address} gives no answer that can be read: " in words


@pytest.fixture
def liar() -> Iterator[Callable[[ClusterInfo | bytes], str]]:
    """Gives the address of a name server that tells this of its brokers."""
    with TopicBrokers() as brokers:

        def tell(info: ClusterInfo | bytes) -> str:
            body = info if isinstance(info, bytes) else write_body(info)
            brokers.name_server.succeed(RequestCode.GET_BROKER_CLUSTER_INFO, body)
            return brokers.namesrv

        yield tell


@pytest.mark.parametrize(
    "address",
    [
        "",
        "here",
        "127.0.0.1:99999",
        "127.0.0.1:-1",
        "127.0.0.1:1",
        "[::1",
        "a\r\nb:1",
        "a\0b:1",
        "x" * 5000 + ":1",
        "\u202e:1",
    ],
)
def test_brokers_at_addresses_that_are_none_are_named(
    http: Client, liar: Callable[[ClusterInfo | bytes], str], address: str
) -> None:
    broker = BrokerData(broker_addrs={"0": address}, broker_name=NAME, cluster="c")
    namesrv = liar(ClusterInfo(broker_addr_table={NAME: broker}, cluster_addr_table={"c": [NAME]}))
    told = asked_by_rest(http, namesrv)
    assert told.status_code == 200, told.content
    shown = asked_on_the_page(http, namesrv)
    assert shown.status_code == 200
    page = shown.content.decode()
    assert NAME not in page
    if address:
        assert any(NAME in warning for warning in told.json()["warnings"])
        assert html.escape(NAME) in page


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'{"brokerAddrTable":[]}',
        b'{"brokerAddrTable":{"a":null}}',
        b'{"brokerAddrTable":{"a":{"brokerAddrs":{"zero":"127.0.0.1:1"}}}}',
        b'{"brokerAddrTable":' + b"[" * 100_000,
        b'{"brokerAddrTable":{"a":{"brokerName":"\xff"}}}',
    ],
)
def test_a_table_of_brokers_that_is_none_is_said(
    http: Client, liar: Callable[[ClusterInfo | bytes], str], body: bytes
) -> None:
    namesrv = liar(body)
    for asked in (asked_by_rest, asked_on_the_page):
        assert asked(http, namesrv).status_code == 200


def test_ten_thousand_brokers_are_counted_and_few_are_asked(
    http: Client, liar: Callable[[ClusterInfo | bytes], str]
) -> None:
    names = [f"broker-{number}" for number in range(10_000)]
    table = {name: BrokerData(broker_addrs={"0": "127.0.0.1:1"}, broker_name=name, cluster="c") for name in names}
    told = asked_by_rest(http, liar(ClusterInfo(broker_addr_table=table, cluster_addr_table={"c": names})))
    assert told.status_code == 200
    assert told.json()["changes"][0]["after"]["broker_count"] == 10_000
    assert len(told.content) < 100_000
