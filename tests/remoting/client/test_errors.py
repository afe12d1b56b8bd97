from __future__ import annotations

import pytest

from remoting.client.errors import (
    BrokerRefused,
    ClientError,
    ConnectionLost,
    NotConnected,
    NotWritable,
    RequestTimedOut,
    RouteNotFound,
    SendFailed,
)
from remoting.wire.codes import RequestCode

ADDRESS = "10.0.0.1:10911"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NotConnected(ADDRESS, "Connection refused"), "no connection to 10.0.0.1:10911: Connection refused"),
        (
            RequestTimedOut(ADDRESS, RequestCode.HEART_BEAT, 3000),
            "10.0.0.1:10911 did not answer HEART_BEAT within 3000 ms",
        ),
        (
            BrokerRefused(ADDRESS, RequestCode.SEND_MESSAGE_V2, 17, " no topic \nat x", "topic 'T'"),
            "10.0.0.1:10911 refused SEND_MESSAGE_V2 for topic 'T' with TOPIC_NOT_EXIST (17): no topic "
            " (create the topic, or let the broker create topics on first use)",
        ),
        (BrokerRefused(ADDRESS, 4711, 4712, None), "10.0.0.1:10911 refused code 4711 with code 4712 (4712)"),
        (
            RouteNotFound("T", "ns:9876"),
            "the name servers ns:9876 know no route to topic 'T': create the topic, or check its name and that its"
            " broker is running",
        ),
        (SendFailed("T", []), "sending to topic 'T' failed after 0 attempts: no time for a try"),
        (
            SendFailed("T", [ConnectionLost(ADDRESS, "gone")]),
            "sending to topic 'T' failed after 1 attempt: 1. no connection to 10.0.0.1:10911: gone"
            " (see that it runs and can be reached from here)",
        ),
        (
            SendFailed("T", [NotWritable("T")]),
            "sending to topic 'T' failed after 1 attempt: 1. no broker that has a master lets topic 'T' be written:"
            " give the topic the permission to write, or start its master",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_texts_name_the_thing_and_the_remedy(error: ClientError, text: str) -> None:
    assert str(error) == text


def test_a_long_remark_is_cut_in_the_text_and_whole_in_the_error() -> None:
    error = BrokerRefused(ADDRESS, 10, 1, "x" * 1000)
    assert len(str(error)) < 400
    assert error.remark == "x" * 1000


def test_errors_of_the_network_are_also_pythons_own() -> None:
    assert isinstance(ConnectionLost(ADDRESS, "x"), ConnectionError)
    assert isinstance(RequestTimedOut(ADDRESS, 10, 1), TimeoutError)
    assert issubclass(ConnectionLost, NotConnected)
