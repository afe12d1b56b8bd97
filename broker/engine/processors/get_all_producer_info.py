"""GET_ALL_PRODUCER_INFO (328): the clients of all producer groups."""

from __future__ import annotations

from broker.engine.groups.members import Client, Members
from broker.engine.serving.requests import Request
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import (
    ProducerInfo,
    ProducerTable,
)
from remoting.wire.codes import LanguageCode, ResponseCode
from remoting.wire.command import Command, response


class GetAllProducerInfo:
    def __init__(self, members: Members) -> None:
        self._members = members

    def __call__(self, request: Request) -> Command:
        groups = {
            group: [_producer(client) for client in self._members.producers(group)]
            for group in self._members.producer_groups()
        }
        return response(request.command, ResponseCode.SUCCESS, body=write_body(ProducerTable(data=groups)))


def _producer(client: Client) -> ProducerInfo:
    return ProducerInfo(
        client_id=client.client_id,
        language=LanguageCode(client.language).name,
        last_update_timestamp=client.last_heartbeat_ms,
        remote_ip=f"/{client.connection.peer}",
        version=client.version,
    )
