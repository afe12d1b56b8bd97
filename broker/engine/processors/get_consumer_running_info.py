"""GET_CONSUMER_RUNNING_INFO (307): one member's own figures; the broker passes request and answer on."""

from __future__ import annotations

from broker.engine.groups.member_calls import MemberCalls
from broker.engine.processors.member_request import pass_on
from broker.engine.serving.requests import Request
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from remoting.wire.headers.groups import GetConsumerRunningInfoHeader
from remoting.wire.headers.typed import read_header


class GetConsumerRunningInfo:
    def __init__(self, calls: MemberCalls) -> None:
        self._calls = calls

    def __call__(self, request: Request) -> None:
        """Asks the member, and returns None: the answer is sent when the member's comes.

        Raises MessageError when it is not online.
        """
        command = request.command
        header = read_header(GetConsumerRunningInfoHeader, command.ext_fields)
        question = Command(
            code=RequestCode.GET_CONSUMER_RUNNING_INFO, ext_fields=dict(command.ext_fields), body=command.body
        )
        pass_on(self._calls, request, header.consumer_group, header.client_id, question)
