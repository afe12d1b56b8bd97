"""Serves the least that a producer needs: a process that gives out a route and says "stored" to every send.

What a benchmark measures against it is the client alone.
"""

from __future__ import annotations

import asyncio
import sys

from remoting.connection import Connection, Handler
from remoting.server import Server
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.route import BrokerData, QueueData, TopicRouteData
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command, response

QUEUES = 4
_STORED = {"msgId": "7F00000100002A9F0000000000000000", "queueId": "0", "queueOffset": "0"}


class EchoBroker(Handler[Connection]):
    """Name server and broker on one port."""

    def __init__(self) -> None:
        self._route = b""

    async def serve(self) -> None:
        """Prints its address and answers until its standard input ends."""
        server = Server(self)
        port = await server.listen("127.0.0.1", 0)
        address = f"127.0.0.1:{port}"
        queues = QueueData(broker_name="echo", perm=6, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        broker = BrokerData(broker_addrs={"0": address}, broker_name="echo", cluster="bench")
        self._route = write_body(TopicRouteData(broker_datas=[broker], queue_datas=[queues]))
        print(address, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await server.close()

    def connected(self, connection: Connection) -> None:
        pass

    def disconnected(self, connection: Connection, error: Exception | None) -> None:
        pass

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        for request in requests:
            if not request.is_oneway:
                connection.send(self._answer(request))

    def _answer(self, request: Command) -> Command:
        if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            return response(request, 0, body=self._route)
        return response(request, 0, ext_fields=_STORED)


if __name__ == "__main__":
    asyncio.run(EchoBroker().serve())
