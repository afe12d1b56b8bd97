"""GET_CONSUMER_LIST_BY_GROUP (38): the client ids of a group's members, for their rebalance."""

from __future__ import annotations

from broker.engine.groups.members import Members
from broker.engine.serving.requests import Request
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import ConsumerIds
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.groups import ConsumerGroupHeader
from remoting.wire.headers.typed import read_header


class GetConsumerListByGroup:
    def __init__(self, members: Members) -> None:
        self._members = members

    def __call__(self, request: Request) -> Command:
        header = read_header(ConsumerGroupHeader, request.command.ext_fields)
        ids = self._members.client_ids(header.consumer_group)
        if not ids:
            text = f"no consumer for this group, {header.consumer_group}"
            return response(request.command, ResponseCode.SYSTEM_ERROR, text)
        return response(request.command, ResponseCode.SUCCESS, body=write_body(ConsumerIds(consumer_id_list=ids)))
