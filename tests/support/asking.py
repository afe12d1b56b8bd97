"""One request and its answer over a plain blocking socket, for tests that drive processes from outside."""

from __future__ import annotations

import socket
from collections.abc import Callable

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.frames import FrameReader, encode_frame

# So many small requests fit into the socket's buffers: nobody waits for a peer that waits.
UNDER_WAY_MAX = 100
# A broker that is gone refuses at once; one that is busy answers in the end.
ANSWER_WITHIN_S = 60.0


def ask(address: str, request: Command, timeout_s: float = ANSWER_WITHIN_S) -> Command:
    """The answer of `address` ("host:port"). Raises OSError when it cannot be had."""
    return ask_in_turn(address, [request], timeout_s)[0]


def ask_in_turn(address: str, requests: list[Command], timeout_s: float = ANSWER_WITHIN_S) -> list[Command]:
    """As `ask`, one after the other on one connection: a member is its connection."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout_s) as connection:
        reader = FrameReader()
        return [_answer(connection, reader, request, address) for request in requests]


def ask_pages(address: str, request: Command, following: Callable[[Command], Command | None]) -> list[Command]:
    """As `ask`, on one connection, until `following` has no further request for the last answer."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), ANSWER_WITHIN_S) as connection:
        reader, answers = FrameReader(), []
        next_request: Command | None = request
        while next_request is not None:
            answers.append(_answer(connection, reader, next_request, address))
            next_request = following(answers[-1])
    return answers


def ask_at_once(address: str, requests: list[Command], timeout_s: float = ANSWER_WITHIN_S) -> list[Command]:
    """As `ask_in_turn`, with `UNDER_WAY_MAX` requests under way at a time."""
    host, _, port = address.rpartition(":")
    answers: dict[int, Command] = {}
    with socket.create_connection((host, int(port)), timeout_s) as connection:
        reader = FrameReader()
        for start in range(0, len(requests), UNDER_WAY_MAX):
            batch = requests[start : start + UNDER_WAY_MAX]
            for opaque, request in enumerate(batch, start=start):
                request.opaque = opaque
            connection.sendall(b"".join(encode_frame(request) for request in batch))
            while len(answers) < start + len(batch):
                data = connection.recv(65536)
                if not data:
                    raise ConnectionError(f"{address} closed the connection without all answers")
                answers |= {answer.opaque: answer for answer in reader.feed(data)}
    return [answers[opaque] for opaque in range(len(requests))]


def _answer(connection: socket.socket, reader: FrameReader, request: Command, address: str) -> Command:
    connection.sendall(encode_frame(request))
    while True:
        data = connection.recv(65536)
        if not data:
            raise ConnectionError(f"{address} closed the connection without an answer")
        for command in reader.feed(data):
            if command.is_response and command.opaque == request.opaque:
                return command


def has_route(namesrv: str, topic: str = "TBW102") -> bool:
    """Whether the name server at `namesrv` answers and knows `topic` (the one that stands for auto-creation)."""
    request = Command(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, ext_fields={"topic": topic})
    try:
        return ask(namesrv, request).code == ResponseCode.SUCCESS
    except OSError:
        return False
