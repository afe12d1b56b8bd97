from __future__ import annotations

import asyncio
import logging

import pytest

from remoting import connection as connection_module
from remoting import shares as shares_module
from remoting.connection import REQUESTS_AT_ONCE_MAX, SLOW_READER_TIMEOUT_S, Connection
from remoting.wire.codes import ONEWAY_FLAG, RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import FrameError
from remoting.wire.frames import encode_frame
from remoting.wire.limits import FRAME_BYTES_MAX
from tests.support.memory_network import Pipe, Recorder
from tests.support.waiting import eventually


class Answering(Recorder):
    """Answers every request with `body_bytes` zeros."""

    def __init__(self, body_bytes: int = 0) -> None:
        super().__init__()
        self.body_bytes = body_bytes

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        super().requests_received(connection, requests)
        for request in requests:
            if not request.is_oneway:
                connection.send(response(request, 0, body=bytes(self.body_bytes)))


async def test_a_request_is_answered() -> None:
    pipe = Pipe(Recorder(), Answering(5))
    answer = await pipe.client.request(Command(code=RequestCode.HEART_BEAT), 1000)
    assert (answer.code, bytes(answer.body)) == (0, bytes(5))


async def test_both_ends_may_ask() -> None:
    pipe = Pipe(Answering(), Answering())
    answers = await asyncio.gather(
        pipe.client.request(Command(code=34), 1000), pipe.server.request(Command(code=307), 1000)
    )
    assert [answer.code for answer in answers] == [0, 0]


async def test_frames_arrive_whole_however_the_network_cuts_them() -> None:
    server = Answering(1000)
    pipe = Pipe(Recorder(), server)
    pipe.to_server.piece_bytes = pipe.to_client.piece_bytes = 7
    waiting = [pipe.client.request(Command(code=code, body=bytes(code)), 5000) for code in range(20)]
    answers = await asyncio.gather(*waiting)
    assert [request.code for request in server.requests] == list(range(20))
    assert all(len(answer.body) == 1000 for answer in answers)


async def test_what_is_sent_in_one_turn_of_the_loop_leaves_with_one_write() -> None:
    pipe = Pipe(Recorder(), Answering())
    await asyncio.gather(*(pipe.client.request(Command(code=34), 1000) for _ in range(50)))
    assert len(pipe.to_server.writes) == 1
    assert len(pipe.to_client.writes) == 1


async def test_requests_are_handed_over_in_portions_of_a_bounded_size() -> None:
    server = Answering()
    pipe = Pipe(Recorder(), server)
    await asyncio.gather(*(pipe.client.request(Command(code=34), 1000) for _ in range(150)))
    assert server.portions == [REQUESTS_AT_ONCE_MAX, REQUESTS_AT_ONCE_MAX, 150 - 2 * REQUESTS_AT_ONCE_MAX]


async def test_a_peer_that_does_not_read_is_not_read_from_and_memory_stays_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "WRITE_BUFFER_BYTES_MAX", 1_000_000)
    server = Answering(100_000)
    pipe = Pipe(Recorder(), server)
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
    for _ in range(3 * REQUESTS_AT_ONCE_MAX):
        pipe.client.requester.send_oneway(Command(code=15))
    pipe.client._flush()
    pipe.to_server.deliver()
    assert server.portions == [REQUESTS_AT_ONCE_MAX]
    assert not pipe.to_client._is_reading
    await eventually(lambda: len(server.requests) == 3 * REQUESTS_AT_ONCE_MAX)
    await eventually(lambda: pipe.to_client._is_reading)
    assert pipe.server._shares.busy_count == 0
    assert pipe.server._shares.received_bytes == 0


async def test_what_does_not_fit_into_a_turn_is_put_back_and_comes_in_order() -> None:
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


async def test_what_comes_while_requests_wait_for_their_turn_is_looked_at_after_them() -> None:
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
    assert pipe.server._shares.received_bytes == 0


async def test_a_turn_is_over_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares_module, "TURN_S_MAX", -1.0)
    monkeypatch.setattr(shares_module, "TURN_S_MIN", -1.0)
    pipe = Pipe(Answering(), Answering())
    await asyncio.gather(pipe.client.request(Command(code=34), 1000), pipe.server.request(Command(code=307), 1000))
    assert pipe.server.is_turn_over
    assert not pipe.client.is_turn_over, "a client has nobody else to serve"


async def test_good_requests_before_a_broken_stream_are_served_however_many_turns_they_take() -> None:
    server = Recorder()
    pipe = Pipe(Recorder(), server)
    pipe.to_server.write(encode_frame(Command(code=34)) * 100 + b"\xff\xff\xff\xff")
    await eventually(lambda: server.lost)
    assert len(server.requests) == 100


async def test_half_a_frame_is_counted_until_it_is_whole_or_its_peer_is_gone() -> None:
    server = Recorder()
    pipe = Pipe(Recorder(), server)
    frame = encode_frame(Command(code=34, body=bytes(1000)))
    pipe.to_server.write(frame[:500])
    await eventually(lambda: pipe.server._shares.received_bytes == 500)
    pipe.to_server.write(frame[500:] + frame[:10])
    await eventually(lambda: pipe.server._shares.received_bytes == 10)
    assert len(server.requests) == 1
    pipe.to_server.cut()
    await eventually(lambda: server.lost)
    assert pipe.server._shares.received_bytes == 0


async def test_a_peer_that_does_not_read_is_cut_when_it_has_far_more_to_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection_module, "WRITE_BUFFER_BYTES_MAX", 1000)
    monkeypatch.setattr(connection_module, "OWED_BYTES_MAX", 10_000)
    server = Recorder()
    pipe = Pipe(Recorder(), server)
    pipe.to_client.hold()
    for _ in range(12):
        pipe.server.requester.send_oneway(Command(code=40, body=bytes(1000)))
        await asyncio.sleep(0)
    await eventually(lambda: server.lost)
    assert "127.0.0.1:50000: has 1" in caplog.text
    assert pipe.server._shares.owed_bytes == 0


async def test_a_peer_that_reads_nothing_is_cut_after_a_while_and_one_that_reads_a_little_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "WRITE_BUFFER_BYTES_MAX", 1000)
    pipe = Pipe(Recorder(), Recorder())
    pipe.to_client.hold()
    pipe.server.requester.send_oneway(Command(code=40, body=bytes(5000)))
    await eventually(lambda: pipe.server.is_write_paused)
    now_s = asyncio.get_running_loop().time()
    pipe.server.cut_if_stuck(now_s + SLOW_READER_TIMEOUT_S - 1)
    assert pipe.server.is_open
    del pipe.to_client.in_flight[:100]
    pipe.server.cut_if_stuck(now_s + SLOW_READER_TIMEOUT_S + 1)
    pipe.server.cut_if_stuck(now_s + 2 * SLOW_READER_TIMEOUT_S)
    assert pipe.server.is_open
    pipe.server.cut_if_stuck(now_s + 2 * SLOW_READER_TIMEOUT_S + 2)
    assert not pipe.server.is_open


async def test_a_peer_that_does_not_read_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "WRITE_BUFFER_BYTES_MAX", 1000)
    pipe = Pipe(Recorder(), Recorder())
    pipe.to_client.hold()
    pipe.server.requester.send_oneway(Command(code=40, body=bytes(5000)))
    await eventually(lambda: pipe.server.is_write_paused)
    with pytest.raises(ConnectionError, match="does not read"):
        pipe.server.request(Command(code=307), 1000)


async def test_two_ends_that_send_much_at_once_do_not_wait_for_each_other_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "WRITE_BUFFER_BYTES_MAX", 100_000)
    pipe = Pipe(Recorder(), Answering(50_000))
    body = bytes(50_000)
    answers = await asyncio.gather(*(pipe.client.request(Command(code=10, body=body), 20_000) for _ in range(200)))
    assert len(answers) == 200


async def test_senders_can_wait_until_the_peer_has_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "WRITE_BUFFER_BYTES_MAX", 1000)
    pipe = Pipe(Recorder(), Recorder())
    await pipe.client.drained()
    pipe.to_server.hold()
    pipe.client.requester.send_oneway(Command(code=10, body=bytes(2000)))
    await eventually(lambda: pipe.client.is_write_paused)
    waiting = [asyncio.create_task(pipe.client.drained()) for _ in range(2)]
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in waiting)
    pipe.to_server.release()
    await asyncio.gather(*waiting)


async def test_waiting_for_a_peer_ends_when_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "WRITE_BUFFER_BYTES_MAX", 1000)
    pipe = Pipe(Recorder(), Recorder())
    pipe.to_server.hold()
    pipe.client.requester.send_oneway(Command(code=10, body=bytes(2000)))
    await eventually(lambda: pipe.client.is_write_paused)
    waiting = asyncio.create_task(pipe.client.drained())
    await asyncio.sleep(0)
    pipe.to_server.cut()
    await waiting


async def test_a_broken_stream_closes_the_connection_and_says_so_once_with_the_peer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Recorder()
    pipe = Pipe(Recorder(), server)
    good = encode_frame(Command(code=34))
    pipe.to_server.write(good + b"\xff\xff\xff\xff" + good)
    await eventually(lambda: server.lost)
    assert [request.code for request in server.requests] == [34]
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "127.0.0.1:50000: frame length -1" in warnings[0]


async def test_a_cut_fails_what_waits_and_tells_both_handlers() -> None:
    client, server = Recorder(), Recorder()
    pipe = Pipe(client, server)
    waiting = pipe.client.request(Command(code=11), 60_000)
    pipe.to_server.cut()
    with pytest.raises(ConnectionError, match=r"127.0.0.1:10911 was closed"):
        await waiting
    await eventually(lambda: client.lost and server.lost)
    assert not pipe.client.is_open
    with pytest.raises(ConnectionError, match="is closed"):
        pipe.client.request(Command(code=1), 1000)
    pipe.client.send(Command(code=1))


async def test_closing_writes_what_was_sent_before() -> None:
    server = Recorder()
    pipe = Pipe(Recorder(), server)
    pipe.client.requester.send_oneway(Command(code=35))
    pipe.client.close()
    await pipe.client.wait_closed()
    assert [request.code for request in server.requests] == [35]


async def test_closing_does_not_wait_longer_than_told_for_a_peer_that_does_not_read() -> None:
    pipe = Pipe(Recorder(), Recorder())
    pipe.to_server.hold()
    pipe.client.requester.send_oneway(Command(code=35))
    async with asyncio.timeout(2):
        await pipe.client.closed_within(0.02)


async def test_an_exception_in_a_handler_is_logged_and_ends_that_connection_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(Recorder):
        def requests_received(self, connection: Connection, requests: list[Command]) -> None:
            raise RuntimeError("our mistake")

    server = Failing()
    pipe = Pipe(Recorder(), server)
    with pytest.raises(ConnectionError):
        await pipe.client.request(Command(code=34), 1000)
    assert "handling > HEART_BEAT" in caplog.text
    assert "our mistake" in caplog.text


async def test_an_answer_too_large_for_a_frame_becomes_a_refusal() -> None:
    pipe = Pipe(Recorder(), Answering(FRAME_BYTES_MAX))
    answer = await pipe.client.request(Command(code=21), 1000)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "over the limit" in (answer.remark or "")


async def test_a_request_too_large_for_a_frame_is_refused_and_the_connection_lives() -> None:
    pipe = Pipe(Recorder(), Answering())
    with pytest.raises(FrameError, match="over the limit"):
        pipe.client.request(Command(code=10, body=bytes(FRAME_BYTES_MAX)), 1000)
    assert (await pipe.client.request(Command(code=34), 1000)).code == 0
