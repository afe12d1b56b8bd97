from __future__ import annotations

import asyncio

import pytest

from remoting.memory_budget import MemoryBudget
from remoting.requester import Requester
from remoting.wire.codes import ONEWAY_FLAG, RESPONSE_FLAG, RequestCode
from remoting.wire.command import Command, response
from remoting.wire.errors import FrameError


@pytest.fixture
def sent() -> list[Command]:
    return []


@pytest.fixture
def requester(sent: list[Command]) -> Requester:
    return Requester(sent.append, MemoryBudget())


async def test_responses_find_their_requests_in_any_order(requester: Requester, sent: list[Command]) -> None:
    first = requester.request(Command(code=1), 60_000)
    second = requester.request(Command(code=2), 60_000)
    assert requester.take(response(sent[1], 22))
    assert requester.take(response(sent[0], 11))
    assert (await first).code == 11
    assert (await second).code == 22
    assert requester.pending_count == 0


async def test_a_request_is_not_taken_for_a_response(requester: Requester, sent: list[Command]) -> None:
    waiting = requester.request(Command(code=1), 60_000)
    assert not requester.take(Command(code=40, opaque=sent[0].opaque))
    assert requester.pending_count == 1
    requester.take(response(sent[0], 0))
    await waiting


async def test_a_request_without_answer_times_out_with_its_name(requester: Requester) -> None:
    with pytest.raises(TimeoutError, match="no answer to HEART_BEAT within 10 ms"):
        await requester.request(Command(code=RequestCode.HEART_BEAT), 10)
    assert requester.pending_count == 0


async def test_a_late_response_is_dropped(requester: Requester, sent: list[Command]) -> None:
    with pytest.raises(TimeoutError):
        await requester.request(Command(code=1), 1)
    assert requester.take(response(sent[0], 0))
    assert requester.take(Command(code=0, opaque=4711, flag=RESPONSE_FLAG))


async def test_a_cancelled_request_leaves_the_table_at_its_time_out(requester: Requester, sent: list[Command]) -> None:
    waiting = asyncio.ensure_future(requester.request(Command(code=1), 20))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0.05)
    assert requester.pending_count == 0
    assert requester.take(response(sent[0], 0))


async def test_all_waiting_requests_fail_when_the_connection_goes(requester: Requester) -> None:
    waiting = [requester.request(Command(code=1), 60_000) for _ in range(3)]
    requester.fail_all(ConnectionError("gone"))
    for request in waiting:
        with pytest.raises(ConnectionError, match="gone"):
            await request
    assert requester.pending_count == 0


async def test_a_oneway_is_marked_and_not_waited_for(requester: Requester, sent: list[Command]) -> None:
    requester.send_oneway(Command(code=40))
    assert sent[0].flag == ONEWAY_FLAG
    assert requester.pending_count == 0


async def test_each_command_gets_its_own_opaque(requester: Requester, sent: list[Command]) -> None:
    command = Command(code=1)
    waiting = requester.request(command, 60_000)
    first = command.opaque
    requester.send_oneway(command)
    assert command.opaque != first
    requester.take(Command(code=0, opaque=first, flag=RESPONSE_FLAG))
    await waiting


async def test_requests_in_flight_are_bounded(sent: list[Command]) -> None:
    requester = Requester(sent.append, MemoryBudget(), pending_max=2)
    waiting = [requester.request(Command(code=1), 60_000) for _ in range(2)]
    with pytest.raises(ConnectionError, match="2 requests wait"):
        requester.request(Command(code=1), 60_000)
    requester.fail_all(ConnectionError())
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_command_that_cannot_be_written_leaves_nothing_waiting() -> None:
    def refuse(command: Command) -> None:
        raise FrameError("too long")

    requester = Requester(refuse, MemoryBudget())
    with pytest.raises(FrameError):
        requester.request(Command(code=1), 60_000)
    assert requester.pending_count == 0


async def test_requests_of_all_connections_together_are_bounded() -> None:
    budget = MemoryBudget(pending_max=2)
    one, other = Requester(lambda _: None, budget), Requester(lambda _: None, budget)
    waiting = [one.request(Command(code=1), 60_000), other.request(Command(code=1), 60_000)]
    with pytest.raises(ConnectionError, match="2 requests wait"):
        one.request(Command(code=1), 60_000)
    other.fail_all(ConnectionError("gone"))
    waiting.append(one.request(Command(code=1), 60_000))
    one.fail_all(ConnectionError("gone"))
    assert budget.pending_count == 0
    assert all(isinstance(error, ConnectionError) for error in await asyncio.gather(*waiting, return_exceptions=True))
