"""Registration of brokers at a name server, by brokers and tools: 103, 104, 216, 217, 322, 901, 904.

Name server and broker are one process. The routes are the broker's own topics, so nothing needs to be registered, and
another broker is refused: it would find its clients at a name server that ends with this broker.
"""

from __future__ import annotations

from broker.engine.config import BrokerConfig
from broker.engine.serving.requests import Request
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.route import MASTER_ID, BrokerMemberGroup, BrokerMemberGroupAnswer
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.name_server import BrokerMemberGroupHeader
from remoting.wire.headers.typed import read_header


class Registration:
    def __init__(self, config: BrokerConfig) -> None:
        self._config = config

    def refuse_broker(self, request: Request) -> Command:
        """Refuses 103 REGISTER_BROKER, 217 REGISTER_TOPIC_IN_NAMESRV, 322 QUERY_DATA_VERSION, 904 BROKER_HEARTBEAT."""
        text = (
            f"this name server serves only its own broker {self._config.name} at {self._config.address};"
            " give the other broker a name server of its own"
        )
        return response(request.command, ResponseCode.NO_PERMISSION, text)

    def accept(self, request: Request) -> Command:
        """Accepts 104 UNREGISTER_BROKER and 216 DELETE_TOPIC_IN_NAMESRV, which change nothing here.

        A broker that unregisters was never registered. Tools send 216 after they deleted the topic in the broker, and
        with that in the routes.
        """
        return response(request.command, ResponseCode.SUCCESS)

    def members(self, request: Request) -> Command:
        """Answers 901 GET_BROKER_MEMBER_GROUP with this broker, or with none."""
        header = read_header(BrokerMemberGroupHeader, request.command.ext_fields)
        group = BrokerMemberGroup(broker_name=header.broker_name, cluster=header.cluster_name)
        if (header.cluster_name, header.broker_name) == (self._config.cluster, self._config.name):
            group.broker_addrs = {MASTER_ID: self._config.address}
        return response(
            request.command,
            ResponseCode.SUCCESS,
            body=write_body(BrokerMemberGroupAnswer(broker_member_group=group)),
        )
