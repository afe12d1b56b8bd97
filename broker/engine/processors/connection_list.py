"""GET_CONSUMER_CONNECTION_LIST (203), GET_PRODUCER_CONNECTION_LIST (204): the clients of a consumer group, of a
producer group."""

from __future__ import annotations

from collections.abc import Iterable

from broker.engine.groups.members import Client, Members
from broker.engine.serving.requests import Request
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import ClientConnection, ConsumerConnection, ProducerConnection
from remoting.wire.codes import LanguageCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.groups import ConsumerGroupHeader, ProducerGroupHeader
from remoting.wire.headers.typed import read_header


class GetConsumerConnectionList:
    def __init__(self, members: Members) -> None:
        self._members = members

    def __call__(self, request: Request) -> Command:
        header = read_header(ConsumerGroupHeader, request.command.ext_fields)
        group = self._members.find(header.consumer_group)
        if group is None:
            text = f"the consumer group[{header.consumer_group}] not online"
            return response(request.command, ResponseCode.CONSUMER_NOT_ONLINE, text)
        body = ConsumerConnection(
            connection_set=_connections(group.members.values()),
            consume_from_where=group.consume_from_where,
            consume_type=group.consume_type,
            message_model=group.message_model,
            subscription_table=dict(group.subscriptions),
        )
        return response(request.command, ResponseCode.SUCCESS, body=write_body(body))


class GetProducerConnectionList:
    def __init__(self, members: Members) -> None:
        self._members = members

    def __call__(self, request: Request) -> Command:
        header = read_header(ProducerGroupHeader, request.command.ext_fields)
        clients = self._members.producers(header.producer_group)
        if not clients:
            text = f"the producer group[{header.producer_group}] not exist"
            return response(request.command, ResponseCode.SYSTEM_ERROR, text)
        body = ProducerConnection(connection_set=_connections(clients))
        return response(request.command, ResponseCode.SUCCESS, body=write_body(body))


def _connections(clients: Iterable[Client]) -> list[ClientConnection]:
    return [
        ClientConnection(
            client_addr=client.connection.peer,
            client_id=client.client_id,
            language=LanguageCode(client.language).name,
            version=client.version,
        )
        for client in clients
    ]
