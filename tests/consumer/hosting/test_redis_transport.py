"""A connection to Redis that breaks while tasks are held, as Celery's worker drops it and closes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kombu import Connection, Consumer, Producer, Queue
from kombu.transport import resolve_transport

from consumer.hosting.redis_transport import Transport
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.redis

QUEUE = Queue("held", routing_key="held")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as server:
        yield server


def connection_to(server: RedisServer) -> Connection:
    return Connection(f"redis+socket://{server.socket}?virtual_host=0")


def holding_one(server: RedisServer) -> Connection:
    """A connection whose channel got a message and has not acknowledged it."""
    connection = connection_to(server)
    channel = connection.default_channel
    Producer(channel).publish({"n": 1}, routing_key="held", declare=[QUEUE])
    with Consumer(channel, [QUEUE], callbacks=[lambda body, message: None]):
        connection.drain_events(timeout=60)
    assert server.held_count() == 1
    return connection


def test_redis_addresses_lead_to_it() -> None:
    assert resolve_transport("redis") is Transport
    assert resolve_transport("rediss") is Transport


def test_a_channel_whose_connection_was_dropped_leaves_its_tasks_to_redis(server: RedisServer) -> None:
    """The whole of it, with a worker, is in tests/journeys/test_hosting_outages.py."""
    connection = holding_one(server)
    channel = connection.default_channel
    # As `Connection.collect` leaves it.
    channel.connection.client = None
    server.stop()
    channel.qos.restore_unacked_once()
    channel.connection.client = connection
    connection.close()


def test_a_connection_that_is_closed_while_redis_is_there_hands_its_tasks_back(server: RedisServer) -> None:
    holding_one(server).close()
    assert server.connection_count() == 1, "more than the one that asks"
    with connection_to(server) as connection:
        assert connection.default_channel.basic_get("held") is not None
