"""One request and its answer over a plain blocking socket, for tests that drive processes from outside."""

from __future__ import annotations

import socket

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.frames import FrameReader, encode_frame


def ask(address: str, request: Command, timeout_s: float = 3.0) -> Command:
    """The answer of `address` ("host:port"). Raises OSError when it cannot be had."""
    return ask_in_turn(address, [request], timeout_s)[0]


def ask_in_turn(address: str, requests: list[Command], timeout_s: float = 3.0) -> list[Command]:
    """As `ask`, one after the other on one connection: a member is its connection."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout_s) as connection:
        reader = FrameReader()
        return [_answer(connection, reader, request, address) for request in requests]


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
