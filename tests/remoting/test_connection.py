"""What both ends of a connection do: frames, answers, one write a turn, closing."""

from __future__ import annotations

import asyncio
import logging

import pytest

from remoting.connection import Connection
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import FrameError
from remoting.wire.frames import encode_frame
from remoting.wire.limits import FRAME_BYTES_MAX
from tests.support.logged import lines_of
from tests.support.memory_network import Answering, Pipe, Recorder
from tests.support.waiting import eventually


async def test_a_request_is_answered() -> None:
    pipe = Pipe(Recorder(), Answering(5))
    answer = await pipe.client.request(Command(code=RequestCode.HEART_BEAT), 60_000)
    assert (answer.code, bytes(answer.body)) == (0, bytes(5))


async def test_both_ends_may_ask() -> None:
    pipe = Pipe(Answering(), Answering())
    answers = await asyncio.gather(
        pipe.client.request(Command(code=34), 60_000), pipe.server.request(Command(code=307), 60_000)
    )
    assert [answer.code for answer in answers] == [0, 0]


async def test_frames_arrive_whole_however_the_network_cuts_them() -> None:
    server = Answering(1000)
    pipe = Pipe(Recorder(), server)
    pipe.to_server.piece_bytes = pipe.to_client.piece_bytes = 7
    waiting = [pipe.client.request(Command(code=code, body=bytes(code)), 60_000) for code in range(20)]
    answers = await asyncio.gather(*waiting)
    assert [request.code for request in server.requests] == list(range(20))
    assert all(len(answer.body) == 1000 for answer in answers)


async def test_what_is_sent_in_one_turn_of_the_loop_leaves_with_one_write() -> None:
    pipe = Pipe(Recorder(), Answering())
    await asyncio.gather(*(pipe.client.request(Command(code=34), 60_000) for _ in range(50)))
    assert len(pipe.to_server.writes) == 1
    assert len(pipe.to_client.writes) == 1


async def test_a_broken_stream_closes_the_connection_and_says_so_once_with_the_peer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Recorder()
    pipe = Pipe(Recorder(), server)
    good = encode_frame(Command(code=34))
    pipe.to_server.write(good + b"\xff\xff\xff\xff" + good)
    await eventually(lambda: server.lost)
    assert [request.code for request in server.requests] == [34]
    warnings = lines_of(caplog, "remoting", logging.WARNING)
    assert len(warnings) == 1
    assert "127.0.0.1:50000: frame length -1" in warnings[0]


async def test_a_cut_fails_waiting_requests_and_calls_both_handlers() -> None:
    client, server = Recorder(), Recorder()
    pipe = Pipe(client, server)
    waiting = pipe.client.request(Command(code=11), 60_000)
    pipe.to_server.cut()
    with pytest.raises(ConnectionError, match=r"127.0.0.1:10911 was closed"):
        await waiting
    await eventually(lambda: client.lost and server.lost)
    assert not pipe.client.is_open
    with pytest.raises(ConnectionError, match="is closed"):
        pipe.client.request(Command(code=1), 60_000)
    pipe.client.send(Command(code=1))


async def test_closing_writes_what_was_sent_before() -> None:
    server = Recorder()
    pipe = Pipe(Recorder(), server)
    pipe.client.requester.send_oneway(Command(code=35))
    pipe.client.close()
    await pipe.client.wait_closed()
    assert [request.code for request in server.requests] == [35]


async def test_closing_waits_no_longer_than_its_grace_for_a_peer_that_does_not_read() -> None:
    pipe = Pipe(Recorder(), Recorder())
    pipe.to_server.hold()
    pipe.client.requester.send_oneway(Command(code=35))
    async with asyncio.timeout(60):
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
        await pipe.client.request(Command(code=34), 60_000)
    assert "handling > HEART_BEAT" in caplog.text
    assert "our mistake" in caplog.text


async def test_an_answer_too_large_for_a_frame_becomes_a_refusal() -> None:
    pipe = Pipe(Recorder(), Answering(FRAME_BYTES_MAX))
    answer = await pipe.client.request(Command(code=21), 60_000)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "over the limit" in (answer.remark or "")


async def test_a_request_too_large_for_a_frame_is_refused_and_the_connection_lives() -> None:
    pipe = Pipe(Recorder(), Answering())
    with pytest.raises(FrameError, match="over the limit"):
        pipe.client.request(Command(code=10, body=bytes(FRAME_BYTES_MAX)), 60_000)
    assert (await pipe.client.request(Command(code=34), 60_000)).code == 0
