"""A server's end: turns, slow readers, and what it keeps of what it received."""

from __future__ import annotations

import asyncio

import pytest

from remoting.connection import REQUESTS_AT_ONCE_MAX, Connection
from remoting.server_connection import (
    ROUND_S,
    SLOW_READER_TIMEOUT_S,
    TURN_S_MAX,
    TURN_S_MIN,
    ConnectionLimits,
    FairTurns,
    ServerConnection,
)
from remoting.wire.codes import ONEWAY_FLAG
from remoting.wire.command import Command
from remoting.wire.frames import encode_frame
from tests.support.memory_network import Answering, Pipe, Recorder
from tests.support.waiting import eventually


async def test_requests_are_handed_over_in_portions_of_a_bounded_size() -> None:
    server = Answering()
    pipe = Pipe(Recorder(), server)
    await asyncio.gather(*(pipe.client.request(Command(code=34), 60_000) for _ in range(150)))
    assert server.portions == [REQUESTS_AT_ONCE_MAX, REQUESTS_AT_ONCE_MAX, 150 - 2 * REQUESTS_AT_ONCE_MAX]


async def test_a_peer_that_does_not_read_is_not_read_from_and_memory_stays_bounded() -> None:
    server = Answering(100_000)
    pipe = Pipe(Recorder(), server, limits=ConnectionLimits(write_buffer_bytes_max=1_000_000))
    pipe.to_client.hold()
    waiting = [pipe.client.request(Command(code=11), 60_000) for _ in range(1000)]
    await eventually(lambda: pipe.server.is_write_paused)
    await asyncio.sleep(0)
    # Full after ten answers; what was handed over in the same portion is written still.
    assert len(server.requests) == REQUESTS_AT_ONCE_MAX
    assert len(pipe.to_client.in_flight) <= (REQUESTS_AT_ONCE_MAX + 1) * 100_100
    pipe.to_client.release()
    answers = await asyncio.gather(*waiting)
    assert len(answers) == len(server.requests) == 1000


async def test_a_greedy_peer_gets_one_portion_a_turn_and_is_not_read_from_meanwhile() -> None:
    server = Answering()
    pipe = Pipe(Recorder(), server)
    pipe.to_server.write(encode_frame(Command(code=15, flag=ONEWAY_FLAG)) * (3 * REQUESTS_AT_ONCE_MAX))
    pipe.to_server.deliver()
    assert server.portions == [REQUESTS_AT_ONCE_MAX]
    assert not pipe.to_client.is_reading()
    await eventually(lambda: len(server.requests) == 3 * REQUESTS_AT_ONCE_MAX)
    await eventually(pipe.to_client.is_reading)
    assert pipe.turns.busy_count == 0
    assert pipe.budget.received_bytes == 0


async def test_requests_put_back_at_the_end_of_a_turn_come_again_in_order() -> None:
    class OneATurn(Recorder):
        def requests_received(self, connection: Connection, requests: list[Command]) -> None:
            super().requests_received(connection, requests[:1])
            connection.put_back(requests[1:])

    server = OneATurn()
    pipe = Pipe(Recorder(), server)
    for code in range(10):
        pipe.client.requester.send_oneway(Command(code=code))
    await eventually(lambda: len(server.requests) == 10)
    assert [request.code for request in server.requests] == list(range(10))
    assert server.portions == [1] * 10


async def test_bytes_that_come_while_requests_wait_are_decoded_after_them() -> None:
    class FirstOnly(Recorder):
        def requests_received(self, connection: Connection, requests: list[Command]) -> None:
            most = 1 if not self.requests else len(requests)
            super().requests_received(connection, requests[:most])
            connection.put_back(requests[most:])

    server = FirstOnly()
    pipe = Pipe(Recorder(), server)
    early, late = (
        b"".join(encode_frame(Command(code=code, flag=ONEWAY_FLAG)) for code in codes) for codes in ((1, 2), (3, 4))
    )
    pipe.server.data_received(early)
    pipe.server.data_received(late)
    await eventually(lambda: len(server.requests) == 4)
    assert [request.code for request in server.requests] == [1, 2, 3, 4]
    assert pipe.budget.received_bytes == 0


async def test_a_turn_is_over_when_its_time_is_up() -> None:
    class Slow(Answering):
        def requests_received(self, connection: ServerConnection, requests: list[Command]) -> None:
            while not connection.is_turn_over:
                pass
            super().requests_received(connection, requests[:1])
            connection.put_back(requests[1:])

    server = Slow()
    pipe = Pipe(Recorder(), server)
    await asyncio.gather(*(pipe.client.request(Command(code=34), 60_000) for _ in range(3)))
    assert server.portions == [1, 1, 1]


async def test_good_requests_before_a_broken_stream_are_served_however_many_turns_they_take() -> None:
    server = Recorder()
    pipe = Pipe(Recorder(), server)
    pipe.to_server.write(encode_frame(Command(code=34)) * 100 + b"\xff\xff\xff\xff")
    await eventually(lambda: server.lost)
    assert len(server.requests) == 100


async def test_half_a_frame_counts_until_it_is_complete_or_the_connection_is_lost() -> None:
    server = Recorder()
    pipe = Pipe(Recorder(), server)
    frame = encode_frame(Command(code=34, body=bytes(1000)))
    pipe.to_server.write(frame[:500])
    await eventually(lambda: pipe.budget.received_bytes == 500)
    pipe.to_server.write(frame[500:] + frame[:10])
    await eventually(lambda: pipe.budget.received_bytes == 10)
    assert len(server.requests) == 1
    pipe.to_server.cut()
    await eventually(lambda: server.lost)
    assert pipe.budget.received_bytes == 0


async def test_a_peer_that_does_not_read_is_cut_when_it_has_far_more_to_read(caplog: pytest.LogCaptureFixture) -> None:
    server = Recorder()
    pipe = Pipe(Recorder(), server, limits=ConnectionLimits(write_buffer_bytes_max=1000, unsent_bytes_max=10_000))
    pipe.to_client.hold()
    for _ in range(12):
        pipe.server.requester.send_oneway(Command(code=40, body=bytes(1000)))
        await asyncio.sleep(0)
    await eventually(lambda: server.lost)
    assert "127.0.0.1:50000: has 1" in caplog.text
    assert pipe.budget.unsent_bytes == 0


async def test_a_peer_that_reads_nothing_is_cut_after_a_while_and_one_that_reads_a_little_is_not() -> None:
    pipe = Pipe(Recorder(), Recorder(), limits=ConnectionLimits(write_buffer_bytes_max=1000))
    pipe.to_client.hold()
    now_s = asyncio.get_running_loop().time()
    pipe.server.requester.send_oneway(Command(code=40, body=bytes(5000)))
    await eventually(lambda: pipe.server.is_write_paused)
    pipe.server.cut_if_stuck(now_s + SLOW_READER_TIMEOUT_S - 1)
    assert pipe.server.is_open
    del pipe.to_client.in_flight[:100]
    pipe.server.cut_if_stuck(now_s + SLOW_READER_TIMEOUT_S + 1)
    pipe.server.cut_if_stuck(now_s + 2 * SLOW_READER_TIMEOUT_S)
    assert pipe.server.is_open
    pipe.server.cut_if_stuck(now_s + 2 * SLOW_READER_TIMEOUT_S + 2)
    assert not pipe.server.is_open


async def test_a_request_to_a_peer_that_does_not_read_is_refused() -> None:
    pipe = Pipe(Recorder(), Recorder(), limits=ConnectionLimits(write_buffer_bytes_max=1000))
    pipe.to_client.hold()
    pipe.server.requester.send_oneway(Command(code=40, body=bytes(5000)))
    await eventually(lambda: pipe.server.is_write_paused)
    with pytest.raises(ConnectionError, match="does not read"):
        pipe.server.request(Command(code=307), 60_000)


@pytest.mark.parametrize(
    ("busy_count", "turn_s"),
    [(0, TURN_S_MAX), (1, TURN_S_MAX), (10, ROUND_S / 10), (1000, TURN_S_MIN)],
    ids=["none", "one", "ten", "a thousand"],
)
def test_the_more_connections_are_busy_the_shorter_is_a_turn(busy_count: int, turn_s: float) -> None:
    turns = FairTurns()
    turns.busy_count = busy_count
    assert turns.turn_s == turn_s
