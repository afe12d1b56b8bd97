"""What a user of `consumer.producer` reads when a send cannot be: what it is about and what to do, within 3 s."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from consumer import producer
from remoting.client.errors import ClientError, SendFailed
from remoting.client.name_servers import NameServersUnreachable
from remoting.client.send_result import SendResult
from remoting.wire.errors import MessageError
from remoting.wire.limits import BODY_BYTES_MAX
from tests.journeys.conftest import Cluster
from tests.support.children import free_port
from tests.support.our_broker import OurBroker
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey]

TOPIC = "producer-orders"
SEND_WITHIN_S = 3.0
# For a busy machine to hand the error from one thread to the other; less than two more attempts would take.
GRACE_S = 5.0
REMEDY = "see that it runs and can be reached from here"
# Permissions of a topic: 4 to read, 2 to write.
READ_ONLY = 4


@pytest.fixture
def pointed_at(settings: Any) -> Iterator[Callable[[str], None]]:
    """Gives Django a name server; the process's producer starts anew with it."""

    def point(namesrv: str) -> None:
        producer.close()
        settings.MQADMIN_NAMESRV = namesrv

    yield point
    producer.close()


def refusal(kind: type[Exception], topic: str = TOPIC, body: bytes = b"body") -> str:
    """The text of the error, which must come in time."""
    begun_s = time.monotonic()
    with pytest.raises(kind) as caught:
        producer.send(topic, body)
    assert time.monotonic() - begun_s < SEND_WITHIN_S + GRACE_S
    return str(caught.value)


def was_late(begun_s: float) -> bool:
    """Whether a busy machine may have needed longer than a send may take."""
    return time.monotonic() - begun_s >= SEND_WITHIN_S / 2


def wait_refused(kind: type[ClientError], is_wanted: Callable[[str], bool]) -> None:
    """Until the error is that; what comes sooner than a busy machine's must be it."""

    def is_refused() -> bool:
        begun_s = time.monotonic()
        try:
            text = refusal(kind)
        except ClientError as error:
            text = repr(error)
        assert is_wanted(text) or was_late(begun_s), text
        return is_wanted(text)

    wait_until(is_refused, what="the refusal")


def sent(body: bytes) -> SendResult:
    """Sends again where a busy machine was late; what fails sooner fails the test."""
    results: list[SendResult] = []

    def is_sent() -> bool:
        begun_s = time.monotonic()
        try:
            results.append(producer.send(TOPIC, body))
        except ClientError:
            if not was_late(begun_s):
                raise
        return bool(results)

    wait_until(is_sent, what="a send within its time")
    return results[0]


def test_what_rocketmq_would_not_take_is_refused_before_it_is_sent(
    cluster: Cluster, pointed_at: Callable[[str], None]
) -> None:
    pointed_at(cluster.namesrv)
    assert sent(bytes(BODY_BYTES_MAX)).queue.topic == TOPIC
    assert refusal(MessageError, body=bytes(BODY_BYTES_MAX + 1)) == (
        "the body has 4194305 bytes; at most 4194304 are allowed: make it smaller, or send where to find it"
    )
    assert refusal(MessageError, "orders today") == (
        "the topic name 'orders today' holds a character other than letters, digits, % | - and _"
    )
    assert refusal(MessageError, "o" * 128).startswith("the topic name has 128 characters; 127 are allowed")
    assert refusal(MessageError, "SCHEDULE_TOPIC_XXXX") == (
        "topic 'SCHEDULE_TOPIC_XXXX' is written by brokers only: choose another"
    )
    assert sent(b"the producer is still good").queue.topic == TOPIC


def test_an_address_where_nothing_listens_is_named(pointed_at: Callable[[str], None]) -> None:
    namesrv = f"127.0.0.1:{free_port()}"
    pointed_at(namesrv)
    for _ in range(2):
        assert refusal(NameServersUnreachable) == (
            f"no name server answers (no connection to {namesrv}: Connection refused):"
            " start one, or correct the address"
        )


def test_an_address_that_never_answers_is_given_up_in_time(pointed_at: Callable[[str], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        namesrv = f"127.0.0.1:{mute.getsockname()[1]}"
        pointed_at(namesrv)
        text = refusal(ClientError)
    assert f"{namesrv} did not answer GET_ROUTEINFO_BY_TOPIC within 3000 ms" in text
    assert text.endswith(f"({REMEDY})")


def test_a_broker_that_went_away_is_named_and_used_again_when_it_is_back(
    tmp_path: Path, pointed_at: Callable[[str], None]
) -> None:
    with OurBroker(tmp_path / "store", patient=True) as broker:
        pointed_at(broker.namesrv)
        sent(b"creates the topic")
        # The next producer gets the topic's own route, which it keeps while no name server answers.
        producer.close()
        sent(b"before")
        broker.kill()
        start = f"sending to topic '{TOPIC}' failed after 3 attempts: 1. "
        end = f"3. no connection to {broker.broker}: Connection refused ({REMEDY})"
        for _ in range(2):
            wait_refused(SendFailed, lambda text: text.startswith(start) and text.endswith(end))
        broker.start()
        assert sent(b"after").queue_offset >= 0


def test_a_topic_without_the_permission_to_write_is_named(tmp_path: Path, pointed_at: Callable[[str], None]) -> None:
    with OurBroker(tmp_path / "store", patient=True) as broker:
        pointed_at(broker.namesrv)
        sent(b"before")
        assert broker.stop() == 0
        make_read_only(broker.store / "config/topics.json")
        broker.start()
        pointed_at(broker.namesrv)
        words = (
            f"sending to topic '{TOPIC}' failed after 1 attempt: 1. no broker that has a master lets topic '{TOPIC}'"
            " be written: give the topic the permission to write, or start its master"
        )
        wait_refused(SendFailed, lambda text: text == words)


def make_read_only(file: Path) -> None:
    table = json.loads(file.read_text())
    table["topicConfigTable"][TOPIC]["perm"] = READ_ONLY
    file.write_text(json.dumps(table))
