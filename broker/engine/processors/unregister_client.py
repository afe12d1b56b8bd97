"""UNREGISTER_CLIENT (35): a client says goodbye for one of its groups."""

from __future__ import annotations

from broker.engine.groups.members import Members
from broker.engine.serving.requests import Request
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.groups import UnregisterClientHeader
from remoting.wire.headers.typed import read_header


class UnregisterClient:
    def __init__(self, members: Members) -> None:
        self._members = members

    def __call__(self, request: Request) -> Command:
        header = read_header(UnregisterClientHeader, request.command.ext_fields)
        if header.producer_group:
            self._members.unregister_producer(request.connection, header.producer_group)
        if header.consumer_group:
            self._members.unregister_consumer(request.connection, header.consumer_group)
        return response(request.command, ResponseCode.SUCCESS)
