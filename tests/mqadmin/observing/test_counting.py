"""What is asked of a broker is counted, also what nobody waits for any more."""

from __future__ import annotations

import socket

import pytest

from mqadmin.observing.gateway.counting import UNACKNOWLEDGED_S, Costs, CountedConnections
from mqadmin.observing.gateway.failures import Failures
from mqadmin.observing.gateway.fan_out import fan_out
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from tests.support.answering_server import AnsweringServer


@pytest.mark.parametrize(
    ("code", "errors"), [(RequestCode.GET_ALL_TOPIC_CONFIG, 1), (RequestCode.WATCH, 0)], ids=["a question", "a watch"]
)
@pytest.mark.slow
async def test_a_question_that_the_rounds_end_cuts_off_is_an_error_and_a_watch_is_not(code: int, errors: int) -> None:
    costs, failures = Costs(), Failures()
    connections = CountedConnections(costs)
    async with AnsweringServer() as server:
        server.answers[code] = lambda _connection, _request: None

        async def ask(address: str) -> Command:
            return await connections.request(address, Command(code=code))

        try:
            assert await fan_out({server.address: ask}, str, failures, timeout_s=1.0) == {}
        finally:
            await connections.close()
    assert "did not answer within" in failures.reasons[server.address]
    cost = costs.of(server.address)
    assert (cost.request_count, cost.error_count) == (1, errors)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux alone has it")
async def test_what_a_machine_does_not_acknowledge_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[int, int, int]] = []
    monkeypatch.setattr(socket.socket, "setsockopt", lambda _, *option: said.append(option), raising=True)
    connections = CountedConnections(Costs())
    async with AnsweringServer() as server:
        try:
            await connections.get(server.address)
        finally:
            await connections.close()
    assert (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(UNACKNOWLEDGED_S * 1000)) in said
