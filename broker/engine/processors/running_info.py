"""GET_CONSUMER_RUNNING_INFO (307): what one member says of itself; the broker passes question and answer on."""

from __future__ import annotations

import asyncio

from broker.engine.members import Member, Members
from broker.engine.requests import Request
from remoting.wire.codes import V3_1_8_SNAPSHOT, RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.groups import GetConsumerRunningInfoHeader
from remoting.wire.headers.typed import read_header

# How long the member has; RocketMQ's `Broker2Client` waits as long.
CLIENT_TIMEOUT_MS = 10_000


class GetConsumerRunningInfo:
    def __init__(self, members: Members) -> None:
        self._members = members

    def __call__(self, request: Request) -> None:
        """The answer follows when the member's comes. Raises MessageError when nobody can be asked."""
        header = read_header(GetConsumerRunningInfoHeader, request.command.ext_fields)
        group = self._members.find(header.consumer_group)
        member = group.member(header.client_id) if group is not None else None
        if member is None:
            raise MessageError(
                f"The Consumer <{header.consumer_group}> <{header.client_id}> not online", ResponseCode.SYSTEM_ERROR
            )
        if member.version < V3_1_8_SNAPSHOT:
            raise MessageError(
                f"The Consumer <{header.client_id}> Version <{member.version}> too low to finish,"
                " please upgrade it to V3_1_8_SNAPSHOT",
                ResponseCode.SYSTEM_ERROR,
            )
        _pass_on(request, member)


async def _ask(member: Member, question: Command) -> Command:
    """Raises ConnectionError, TimeoutError."""
    return await member.connection.request(question, CLIENT_TIMEOUT_MS)


def _pass_on(request: Request, member: Member) -> None:
    """The same fields and body to the member; its code, remark, fields and body back."""
    command = request.command
    question = Command(
        code=RequestCode.GET_CONSUMER_RUNNING_INFO, ext_fields=dict(command.ext_fields), body=command.body
    )
    answered = asyncio.ensure_future(_ask(member, question))

    def pass_back(answered: asyncio.Future[Command]) -> None:
        if answered.cancelled():
            return
        error = answered.exception()
        if error is None:
            answer = answered.result()
            back = response(command, answer.code, answer.remark, answer.ext_fields, answer.body)
        else:
            is_late = isinstance(error, TimeoutError)
            code = ResponseCode.CONSUME_MSG_TIMEOUT if is_late else ResponseCode.SYSTEM_ERROR
            back = response(command, code, f"consumer <{member.client_id}> did not answer: {error}")
        request.connection.send(back)

    answered.add_done_callback(pass_back)
