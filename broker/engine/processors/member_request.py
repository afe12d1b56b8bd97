"""Requests that are passed on to one member of a group, whose answer is the answer (`Broker2Client.callClient`).

A member that answers too late makes CONSUME_MSG_TIMEOUT of it, one that is not there or goes away SYSTEM_ERROR.
"""

from __future__ import annotations

from broker.engine.groups.member_calls import MemberCalls, TooManyCalls
from broker.engine.serving.requests import Request
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


def pass_on(calls: MemberCalls, request: Request, group: str, client_id: str, question: Command) -> None:
    """Asks the member `question`, and sends its answer as the answer to `request`. Raises MessageError."""

    def pass_back(answer: Command | Exception) -> None:
        if not request.command.is_oneway:
            request.connection.send(_answer(request.command, f"<{group}> <{client_id}>", answer))

    calls.ask_member(group, client_id, question, pass_back)


def _answer(command: Command, who: str, answer: Command | Exception) -> Command:
    match answer:
        case Command():
            return response(command, answer.code, answer.remark, answer.ext_fields, answer.body)
        case TimeoutError():
            return response(command, ResponseCode.CONSUME_MSG_TIMEOUT, f"consumer {who} Timeout: {answer}")
        case TooManyCalls():
            return response(command, ResponseCode.SYSTEM_BUSY, f"consumer {who}: {answer}; ask again later")
        case _:
            return response(command, ResponseCode.SYSTEM_ERROR, f"invoke consumer {who} Exception: {answer}")
