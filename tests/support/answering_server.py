"""A server on the test's own event loop that answers by request code, as the test tells it."""

from __future__ import annotations

from collections.abc import Callable

from remoting.connection import Connection, Handler
from remoting.server import Server
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.route import BrokerData, QueueData, TopicRouteData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response

# None: no answer.
Answer = Callable[[Connection, Command], Command | None]


class AnsweringServer(Handler[Connection]):
    """`async with AnsweringServer() as server:` — `address` is its own; `asked` holds every request so far.

    Success with nothing else is the answer to what `answers` does not name.
    """

    def __init__(self) -> None:
        self.answers: dict[int, Answer] = {}
        self.asked: list[Command] = []
        self.connections: list[Connection] = []
        self.made = 0
        self.port = 0
        self._server = Server(self)

    async def __aenter__(self) -> AnsweringServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Again on the same port after `stop`."""
        self._server = Server(self)
        self.port = await self._server.listen("127.0.0.1", self.port)

    async def stop(self) -> None:
        await self._server.close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def asked_codes(self) -> list[int]:
        return [request.code for request in self.asked]

    def of_code(self, code: int) -> list[Command]:
        return [request for request in self.asked if request.code == code]

    def refuse(self, request_code: int, code: int, remark: str | None = None) -> None:
        self.answers[request_code] = lambda _, request: response(request, code, remark)

    def succeed(self, request_code: int, body: bytes = b"", **fields: object) -> None:
        """`fields` are the answer's ext fields."""
        texts = {key: str(value) for key, value in fields.items()}
        self.answers[request_code] = lambda _, request: response(request, ResponseCode.SUCCESS, None, texts, body)

    def serve_routes(self, routes: dict[str, TopicRouteData]) -> None:
        """As a name server: what `routes` holds at the moment of the question."""

        def answer(_: Connection, request: Command) -> Command:
            route = routes.get(request.ext_fields["topic"])
            if route is None:
                return response(request, ResponseCode.TOPIC_NOT_EXIST, "No topic route info")
            return response(request, ResponseCode.SUCCESS, body=write_body(route))

        self.answers[RequestCode.GET_ROUTEINFO_BY_TOPIC] = answer

    def connected(self, connection: Connection) -> None:
        self.made += 1
        self.connections.append(connection)

    def disconnected(self, connection: Connection, error: Exception | None) -> None:
        self.connections.remove(connection)

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        for request in requests:
            self.asked.append(request)
            answer = self.answers.get(request.code, lambda _, request: response(request, ResponseCode.SUCCESS))
            reply = answer(connection, request)
            if reply is not None and not request.is_oneway:
                connection.send(reply)


def route_to(*brokers: tuple[str, str], queues: int = 4, perm: int = 6) -> TopicRouteData:
    """A route whose brokers, as (name, address), have `queues` queues each."""
    return TopicRouteData(
        broker_datas=[
            BrokerData(broker_addrs={"0": address}, broker_name=name, cluster="c") for name, address in brokers
        ],
        queue_datas=[
            QueueData(broker_name=name, perm=perm, read_queue_nums=queues, write_queue_nums=queues)
            for name, _ in brokers
        ],
    )
