"""What lies in a queue of a broker, read past every consumer."""

from __future__ import annotations

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.pull import PullMessageHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.stored_message import StoredMessage, decode_messages
from tests.support.asking import ask

MESSAGES_MAX = 32
# The request brings its subscription along, so no member has to be there.
_SUBSCRIPTION_FLAG = 4


def stored_messages(address: str, topic: str, queue_id: int = 0) -> list[StoredMessage]:
    """The queue's first messages, up to 32; none when the broker answers so or knows no such queue."""
    header = PullMessageHeader(
        consumer_group="TOOLS_CONSUMER",
        topic=topic,
        queue_id=queue_id,
        queue_offset=0,
        max_msg_nums=MESSAGES_MAX,
        sys_flag=_SUBSCRIPTION_FLAG,
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription="*",
        sub_version=0,
    )
    answer = ask(address, Command(code=RequestCode.PULL_MESSAGE, ext_fields=write_header(header)))
    return decode_messages(answer.body) if answer.code == ResponseCode.SUCCESS else []
