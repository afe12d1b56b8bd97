"""Requests that came too late to be worth handling (RocketMQ's `BrokerFastFailure`), or are too large to be handled
without holding up all others: a stage of the request table.

RocketMQ looks every 10 ms at the queues before its threads and refuses what is too old there: a sender that has given
up, or soon will, is better off with a refusal at once, which its client takes to another queue or broker. Here nothing
waits for a thread. A request waits in two places: in what was read of its connection, while others have their turns,
and in the kernel, while the event loop is late (a disk that blocks a write, no processor time). The first is measured
exactly; of the second `EventLoopLagMonitor` knows how long it took at most.

Ages differ from RocketMQ's on purpose:
- A send is refused after 1 s, not 0.2 s. RocketMQ's producers wait 3 s for one send with all its tries, so there is
  time for two more; and one thread has stalls of a few 100 ms that are over before a refused client is back.
- A send that lay in the kernel counts as late only when its sender must have given up.
- A pull is refused after 5 s, as there: reading for a client that has given up is the costliest work of all.
- Heartbeats, commits of offsets, send-backs and ends of transactions are handled however late they come: what they
  save later costs more than they do. (RocketMQ drops heartbeats after 31 s, when the client has long given up.)
"""

from __future__ import annotations

from broker.engine.event_loop import EventLoopLagMonitor
from broker.engine.serving.requests import Request
from remoting.server_connection import ServerConnection
from remoting.wire.codes import RequestCode, ResponseCode, request_name
from remoting.wire.errors import MessageError

# A producer has 3 s for all its tries: refused after 1 s, it has time for two more.
SEND_WAIT_MS_MAX = 1_000
# RocketMQ's `waitTimeMillsInPullQueue`.
PULL_WAIT_MS_MAX = 5_000
# `sendMsgTimeout` of all RocketMQ clients: no sender waits any more for a send that lay in the kernel longer.
SENDER_TIMEOUT_MS = 3_000

WAIT_MS_MAX: dict[int, int] = {
    RequestCode.SEND_MESSAGE: SEND_WAIT_MS_MAX,
    RequestCode.SEND_MESSAGE_V2: SEND_WAIT_MS_MAX,
    RequestCode.SEND_BATCH_MESSAGE: SEND_WAIT_MS_MAX,
    RequestCode.PULL_MESSAGE: PULL_WAIT_MS_MAX,
    RequestCode.LITE_PULL_MESSAGE: PULL_WAIT_MS_MAX,
}

# The body of a request that carries no message: the locks of 10,000 queues, or a heartbeat of 5,000 groups, which takes
# about 0.05 s. Those of real clients have some KB.
BODY_BYTES_MAX = 1024 * 1024
# The largest heartbeats of all connected clients together; they are remembered, at about ten times their size.
# 10,000 clients of 6 KB.
HEARTBEATS_BYTES_MAX = 64 * 1024 * 1024
CARRY_MESSAGES = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
    }
)


class Overload:
    """Refuses requests that are too late or too large. Callers: the request table, as a stage and with connections
    that are gone."""

    def __init__(self, lag_monitor: EventLoopLagMonitor, *, heartbeats_bytes_max: int = HEARTBEATS_BYTES_MAX) -> None:
        self._lag_monitor = lag_monitor
        self._heartbeats_bytes_max = heartbeats_bytes_max
        self._heartbeats: dict[ServerConnection, int] = {}
        self._heartbeats_bytes = 0

    def check(self, request: Request) -> None:
        """Raises MessageError: SYSTEM_BUSY for a request that has waited too long, SYSTEM_ERROR for a body that would
        take too long.
        """
        command, connection = request.command, request.connection
        if len(command.body) > BODY_BYTES_MAX and command.code not in CARRY_MESSAGES:
            raise MessageError(
                f"the body of {request_name(command.code)} has {len(command.body)} bytes, of {BODY_BYTES_MAX} allowed:"
                " spread it over several requests or clients",
                ResponseCode.SYSTEM_ERROR,
            )
        if command.code == RequestCode.HEART_BEAT:
            self._check_heartbeat(len(command.body), connection)
        wait_ms_max = WAIT_MS_MAX.get(command.code)
        if wait_ms_max is None:
            return
        waited_ms = connection.waited_s * 1000
        lag_ms = self._lag_monitor.lag_s(connection.turn_began_s) * 1000
        if lag_ms >= SENDER_TIMEOUT_MS:
            waited_ms += lag_ms
        if waited_ms > wait_ms_max:
            raise MessageError(
                "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while,"
                f" period in queue: {waited_ms:.0f}ms, size of queue: {connection.waiting_count}",
                ResponseCode.SYSTEM_BUSY,
            )

    def _check_heartbeat(self, body_bytes: int, connection: ServerConnection) -> None:
        """Takes heartbeats of known clients as long as they don't grow. Raises MessageError (SYSTEM_BUSY)."""
        growth = body_bytes - self._heartbeats.get(connection, 0)
        if growth <= 0:
            return
        if self._heartbeats_bytes + growth > self._heartbeats_bytes_max:
            raise MessageError(
                f"all clients together subscribe to more than {self._heartbeats_bytes_max} bytes of heartbeats can say",
                ResponseCode.SYSTEM_BUSY,
            )
        self._heartbeats[connection] = body_bytes
        self._heartbeats_bytes += growth

    def connection_lost(self, connection: ServerConnection) -> None:
        """Forgets the connection's largest heartbeat."""
        self._heartbeats_bytes -= self._heartbeats.pop(connection, 0)
