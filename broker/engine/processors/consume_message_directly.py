"""CONSUME_MESSAGE_DIRECTLY (309): one member's listener gets one stored message, outside of its queue.

The broker puts the message into the request and passes it on; the answer is what the listener made of it. Nothing is
committed and nothing is retried.
"""

from __future__ import annotations

from broker.engine.groups.group_configs import Groups
from broker.engine.groups.member_calls import MemberCalls
from broker.engine.processors.member_request import pass_on
from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from broker.engine.topics.topic_configs import Topics
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import MessageError
from remoting.wire.headers.groups import ConsumeDirectlyHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.message_id import decode_offset_message_id


class ConsumeMessageDirectly:
    def __init__(
        self, *, calls: MemberCalls, topics: Topics, groups: Groups, store: MessageStore, broker_name: str
    ) -> None:
        self._calls = calls
        self._topics = topics
        self._groups = groups
        self._store = store
        self._broker_name = broker_name

    def __call__(self, request: Request) -> None:
        """Asks the member, and returns None: the answer is sent when the member's comes.

        Raises WireError for a message or member that isn't there.
        """
        header = read_header(ConsumeDirectlyHeader, request.command.ext_fields)
        _, commit_log_offset = decode_offset_message_id(header.msg_id or "")
        record = self._store.record_at(commit_log_offset)
        if record is None:
            raise MessageError(
                f"no message has the id {header.msg_id}: it must be the offset message id of a stored message",
                ResponseCode.SYSTEM_ERROR,
            )
        question = Command(
            code=RequestCode.CONSUME_MESSAGE_DIRECTLY,
            ext_fields=request.command.ext_fields | self._flags(header),
            body=record,
        )
        pass_on(self._calls, request, header.consumer_group, header.client_id or "", question)

    def _flags(self, header: ConsumeDirectlyHeader) -> dict[str, str]:
        fields = {"brokerName": self._broker_name}
        topic = self._topics.find(header.topic or "")
        if topic is not None:
            fields["topicSysFlag"] = str(topic.topic_sys_flag)
        group = self._groups.table.subscription_group_table.get(header.consumer_group)
        if group is not None:
            fields["groupSysFlag"] = str(group.group_sys_flag)
        return fields
