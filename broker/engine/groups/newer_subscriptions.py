"""Asks members for subscriptions that are newer than those of their last heartbeat.

A Java member makes its subscription newer with every rebalance that changes its queues, and tells so by a heartbeat;
when that collides with its regular one (a second after its start, then every 30 s) it is not sent, and RocketMQ refuses
the member's pulls until the next one: the queues stand still for up to 30 s. The member's running info (307) has its
subscriptions, too: it is asked for, taken as a heartbeat is, and the pulls are answered then.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.engine.groups.member_calls import MemberCalls
from broker.engine.groups.members import Members
from remoting.complaints import ComplaintLog
from remoting.connection import Connection
from remoting.wire.bodies.running_info import read_running_info
from remoting.wire.codes import V3_1_8_SNAPSHOT, RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import WireError
from remoting.wire.headers.groups import GetConsumerRunningInfoHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.limits import LENIENT_BODY_BYTES_MAX

# A member that does not answer in this time is refused, and asks again after a second of its own.
ANSWER_TIMEOUT_MS = 1000
# Pulls of one member that wait for its answer: one per queue.
WAITING_MAX = 1024
# Java's answer is JSON that is not standard, slow to read; that of a member with 40 queues has about 20 KiB.
ANSWER_BYTES_MAX = LENIENT_BODY_BYTES_MAX


class NewerSubscriptions:
    """Called on the event loop. Asks one question at a time of each member."""

    def __init__(self, members: Members, calls: MemberCalls, complaints: ComplaintLog) -> None:
        """`complaints` gets a line of an answer that cannot be read: a member is asked anew with each of its pulls."""
        self._members = members
        self._calls = calls
        self._complaints = complaints
        self._waiting: dict[tuple[Connection, str], list[Callable[[], None]]] = {}

    def ask(self, connection: Connection, group: str, then: Callable[[], None]) -> bool:
        """Calls `then` when the member has answered, or will not. Returns False when it cannot be asked."""
        key = (connection, group)
        waiting = self._waiting.get(key)
        if waiting is not None:
            if len(waiting) >= WAITING_MAX:
                return False
            waiting.append(then)
            return True
        members = self._members.find(group)
        member = members.members.get(connection) if members is not None else None
        if member is None or member.version < V3_1_8_SNAPSHOT:
            return False
        self._waiting[key] = [then]
        header = GetConsumerRunningInfoHeader(consumer_group=group, client_id=member.client_id)
        question = Command(code=RequestCode.GET_CONSUMER_RUNNING_INFO, ext_fields=write_header(header))
        self._calls.ask(member, question, ANSWER_TIMEOUT_MS, lambda answer: self._answered(connection, group, answer))
        return True

    def _answered(self, connection: Connection, group: str, answer: Command | Exception) -> None:
        if isinstance(answer, Command) and answer.code == ResponseCode.SUCCESS and len(answer.body) <= ANSWER_BYTES_MAX:
            try:
                subscriptions = read_running_info(answer.body).subscriptions
            except WireError as error:
                words = "group %s: the running info of %s cannot be read: %s"
                host = connection.peer_host[0]
                self._complaints.info(host, "unreadable running info", words, group, connection.peer, error)
            else:
                if subscriptions:
                    self._members.take_subscriptions(group, connection, subscriptions)
        for then in self._waiting.pop((connection, group)):
            then()
