"""Requests that came too late to be worth handling (RocketMQ's `BrokerFastFailure`), or are too large to be handled
without holding up everybody else; and the loop's beat.

RocketMQ looks every 10 ms at the queues before its threads and refuses what is too old there: a sender that has given
up, or soon will, is better off with a refusal at once, which its client takes to another queue or broker. Here nothing
waits for a thread. A request waits in two places: in what was read of its connection, while others have their turns,
and in the kernel, while the loop is held up (a disk that blocks a write, a machine without processor time). The first
is measured exactly; of the second the beat knows how long it took at most.

Ages differ from RocketMQ's on purpose:
- A send is refused after 1 s, not 0.2 s. RocketMQ's producers wait 3 s for one send with all its tries, so there is
  time for two more; and one thread has stalls of a few 100 ms that are over before a refused client is back.
- A send that lay in the kernel counts as late only when its sender must have given up.
- A pull is refused after 5 s, as there: reading for somebody who will not wait is the costliest work of all.
- Heartbeats, commits of offsets, send-backs and ends of transactions are always handled: what they save later costs
  more than they do. (RocketMQ drops heartbeats after 31 s, when the client has long given up.)
"""

from __future__ import annotations

import asyncio
import logging
from math import inf

from remoting.server_connection import ServerConnection
from remoting.wire.codes import RequestCode, ResponseCode, request_name
from remoting.wire.command import Command
from remoting.wire.errors import MessageError

logger = logging.getLogger(__name__)

# A producer has 3 s for all its tries: refused after 1 s, it has time for two more.
SEND_WAIT_MS_MAX = 1_000
# RocketMQ's `waitTimeMillsInPullQueue`.
PULL_WAIT_MS_MAX = 5_000
# `sendMsgTimeout` of all RocketMQ clients: older than that, a send that lay in the kernel has nobody who waits for it.
SENDER_TIMEOUT_MS = 3_000
BEAT_INTERVAL_S = 0.25
# A log with each of them would tell nothing; a second is felt by clients.
STALL_TOLD_S = 1.0

WAIT_MS_MAX: dict[int, int] = {
    RequestCode.SEND_MESSAGE: SEND_WAIT_MS_MAX,
    RequestCode.SEND_MESSAGE_V2: SEND_WAIT_MS_MAX,
    RequestCode.SEND_BATCH_MESSAGE: SEND_WAIT_MS_MAX,
    RequestCode.PULL_MESSAGE: PULL_WAIT_MS_MAX,
    RequestCode.LITE_PULL_MESSAGE: PULL_WAIT_MS_MAX,
}


# Of what carries no message: the locks of 10,000 queues, or a heartbeat of 5,000 groups, which takes about 0.05 s.
# Those of real clients have some KB.
BODY_BYTES_MAX = 1024 * 1024
# What all clients that are connected said in their largest heartbeats: it is remembered, at about ten times its size.
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


class LoopBeat:
    """How long the event loop was held up lately. Times are the loop's, in seconds."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = inf
        self._stall_s = 0.0

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._due_s = loop.time() + BEAT_INTERVAL_S
        self._timer = loop.call_at(self._due_s, self._beat)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def stall_s(self, now_s: float) -> float:
        """What is read now may have waited so long in the kernel."""
        return max(self._stall_s, now_s - self._due_s)

    def _beat(self) -> None:
        self._stall_s = asyncio.get_running_loop().time() - self._due_s
        if self._stall_s >= STALL_TOLD_S:
            logger.warning("the broker was held up for %.1f s: a slow disk, or no processor time", self._stall_s)
        # Timers come before what is read in one kind of loop, and after it in the other: the next round has read all.
        asyncio.get_running_loop().call_soon(self._after_this_round)
        self.start()

    def _after_this_round(self) -> None:
        asyncio.get_running_loop().call_soon(self._forget_stall)

    def _forget_stall(self) -> None:
        self._stall_s = 0.0


class Overload:
    """Called with every request before its processor is, and with connections that are gone."""

    def __init__(self, beat: LoopBeat) -> None:
        self._beat = beat
        self._heartbeats: dict[ServerConnection, int] = {}
        self._heartbeats_bytes = 0

    def check(self, command: Command, connection: ServerConnection) -> None:
        """Raises MessageError: SYSTEM_BUSY for a request that has waited too long, SYSTEM_ERROR for a body that would
        take too long.
        """
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
        stall_ms = self._beat.stall_s(connection.turn_began_s) * 1000
        if stall_ms >= SENDER_TIMEOUT_MS:
            waited_ms += stall_ms
        if waited_ms > wait_ms_max:
            raise MessageError(
                "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while,"
                f" period in queue: {waited_ms:.0f}ms, size of queue: {connection.waiting_count}",
                ResponseCode.SYSTEM_BUSY,
            )

    def _check_heartbeat(self, size: int, connection: ServerConnection) -> None:
        """Those of known clients are taken as long as they don't grow."""
        growth = size - self._heartbeats.get(connection, 0)
        if growth <= 0:
            return
        if self._heartbeats_bytes + growth > HEARTBEATS_BYTES_MAX:
            raise MessageError(
                f"all clients together subscribe to more than {HEARTBEATS_BYTES_MAX} bytes of heartbeats can say",
                ResponseCode.SYSTEM_BUSY,
            )
        self._heartbeats[connection] = size
        self._heartbeats_bytes += growth

    def forget(self, connection: ServerConnection) -> None:
        self._heartbeats_bytes -= self._heartbeats.pop(connection, 0)
