"""INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223): each member's own progress on a topic.

Every member is asked at once (221); one that does not answer in time is left out, as RocketMQ does. `clientAddr`, which
holds a client id, asks one member alone.
"""

from __future__ import annotations

from functools import partial

from broker.engine.groups.member_calls import MemberCalls
from broker.engine.groups.members import Member, Members
from broker.engine.serving.requests import Request
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.progress import read_client_progress, write_group_progress
from remoting.wire.codes import V3_0_7_SNAPSHOT, RequestCode, ResponseCode
from remoting.wire.command import Body, Command, response
from remoting.wire.errors import BodyError, MessageError
from remoting.wire.headers.offsets import ConsumerStatusHeader
from remoting.wire.headers.typed import read_header, write_header

# How long a member has; RocketMQ's `Broker2Client.getConsumeStatus` waits as long for each.
STATUS_TIMEOUT_MS = 5_000


class InvokeBrokerToGetConsumerStatus:
    def __init__(self, calls: MemberCalls, members: Members, complaints: ComplaintLog) -> None:
        """`complaints` gets a line of a member whose answer does not come or cannot be read."""
        self._calls = calls
        self._members = members
        self._complaints = complaints

    def __call__(self, request: Request) -> Command | None:
        """Asks the members, and returns None: the answer is sent with the last of theirs.

        Raises MessageError when no member is online.
        """
        header = read_header(ConsumerStatusHeader, request.command.ext_fields)
        members = self._members_of(header)
        if not members:
            return response(request.command, ResponseCode.SUCCESS, body=write_group_progress({}))
        gathering = _Gathering(request, len(members), self._complaints)
        question = ConsumerStatusHeader(topic=header.topic, group=header.group)
        for member in members:
            command = Command(code=RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, ext_fields=write_header(question))
            self._calls.ask(member, command, STATUS_TIMEOUT_MS, partial(gathering.take, member))
        return None

    def _members_of(self, header: ConsumerStatusHeader) -> list[Member]:
        group = self._members.find(header.group)
        if group is None:
            raise MessageError(
                f"No Any Consumer online in the consumer group: [{header.group}]", ResponseCode.SYSTEM_ERROR
            )
        members = list(group.members.values())
        old = next((member for member in members if member.version < V3_0_7_SNAPSHOT), None)
        if old is not None:
            raise MessageError(
                f"the client {old.client_id} does not support this feature. version={old.version}",
                ResponseCode.SYSTEM_ERROR,
            )
        wanted = (header.client_addr or "").strip()
        return [member for member in members if not wanted or member.client_id == wanted]


class _Gathering:
    """Answers the tool when the last of `left` members has answered or is given up."""

    def __init__(self, request: Request, left: int, complaints: ComplaintLog) -> None:
        self._request = request
        self._left = left
        self._complaints = complaints
        self._progress: dict[str, dict[MessageQueue, int]] = {}

    def take(self, member: Member, answer: Command | Exception) -> None:
        if isinstance(answer, Exception):
            self._complain(member, "no progress", "%s did not answer with its progress: %s", answer)
        elif answer.code == ResponseCode.SUCCESS and answer.body:
            self._note(member, answer.body)
        self._left -= 1
        if not self._left and not self._request.command.is_oneway:
            body = write_group_progress(self._progress)
            self._request.connection.send(response(self._request.command, ResponseCode.SUCCESS, body=body))

    def _note(self, member: Member, body: Body) -> None:
        try:
            self._progress[member.client_id] = read_client_progress(body)
        except BodyError as error:
            words = "%s answered with progress that cannot be read: %s"
            self._complain(member, "unreadable progress", words, error)

    def _complain(self, member: Member, kind: str, words: str, error: Exception) -> None:
        self._complaints.warn(member.connection.peer_host[0], kind, words, member.client_id, error)
