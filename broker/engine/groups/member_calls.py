"""Requests of the broker to one member of a group, and their answers (RocketMQ's `Broker2Client`).

What a tool asks of a client goes through the broker, which alone has a connection to it. Each call has a time-out, and
each member a bounded number of calls without an answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from broker.engine.groups.members import Client, Member, Members
from remoting.connection import Connection
from remoting.wire.codes import V3_1_8_SNAPSHOT, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import MessageError, WireError

# How long a member has to answer; `Broker2Client.callClient` waits as long.
CALL_TIMEOUT_MS = 10_000
# Calls of one member that wait for it: each may carry a whole message (309).
CALLS_PER_MEMBER_MAX = 64

# An answer, or why there is none.
Answered = Callable[[Command | Exception], None]


class TooManyCalls(Exception):
    """The member has more to answer than it may."""


class MemberCalls:
    """Callers: the processors of what tools ask of clients."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._waiting: Counter[Connection] = Counter()

    def ask_member(self, group: str, client_id: str, question: Command, answered: Answered) -> None:
        """Asks that member; `answered` as in `ask`. Raises MessageError when it is not online or too old."""
        self.ask(self._find(group, client_id), question, CALL_TIMEOUT_MS, answered)

    def ask(self, client: Client, question: Command, timeout_ms: int, answered: Answered) -> None:
        """Calls `answered` once, in a later turn of the loop or at once when nothing could be sent."""
        connection = client.connection
        if self._waiting[connection] >= CALLS_PER_MEMBER_MAX or connection.is_write_paused:
            answered(TooManyCalls(f"{self._waiting[connection]} requests wait for {client.client_id} already"))
            return
        try:
            future = asyncio.ensure_future(connection.request(question, timeout_ms))
        except (ConnectionError, WireError) as error:
            answered(error)
            return
        self._waiting[connection] += 1

        def done(future: asyncio.Future[Command]) -> None:
            self._waiting[connection] -= 1
            if not self._waiting[connection]:
                del self._waiting[connection]
            if future.cancelled():
                return
            error = future.exception()
            if error is None:
                answered(future.result())
            elif isinstance(error, Exception):
                answered(error)

        future.add_done_callback(done)

    def _find(self, group: str, client_id: str) -> Member:
        members = self._members.find(group)
        member = members.member(client_id) if members is not None else None
        if member is None:
            raise MessageError(f"The Consumer <{group}> <{client_id}> not online", ResponseCode.SYSTEM_ERROR)
        if member.version < V3_1_8_SNAPSHOT:
            raise MessageError(
                f"The Consumer <{client_id}> Version <{member.version}> too low to finish,"
                " please upgrade it to V3_1_8_SNAPSHOT",
                ResponseCode.SYSTEM_ERROR,
            )
        return member
