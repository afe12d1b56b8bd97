"""What lies in a queue of a broker, read past every consumer."""

from __future__ import annotations

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.pull import PullMessageHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.stored_message import StoredMessage, decode_messages
from tests.support.asking import ask
from tests.support.waiting import wait_until

MESSAGES_MAX = 32
# The request brings its subscription along, so no member has to be there.
_SUBSCRIPTION_FLAG = 4


def pull(
    address: str, topic: str, queue_offset: int = 0, queue_id: int = 0, *, group: str = "TOOLS_CONSUMER"
) -> Command:
    """The broker's answer to a pull of up to 32 messages that does not wait."""
    header = PullMessageHeader(
        consumer_group=group,
        topic=topic,
        queue_id=queue_id,
        queue_offset=queue_offset,
        max_msg_nums=MESSAGES_MAX,
        sys_flag=_SUBSCRIPTION_FLAG,
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription="*",
        sub_version=0,
    )
    return ask(address, Command(code=RequestCode.PULL_MESSAGE, ext_fields=write_header(header)))


def stored_messages(address: str, topic: str, queue_id: int = 0, queue_offset: int = 0) -> list[StoredMessage]:
    """Up to 32 from there on; none when the broker answers so or knows no such queue."""
    answer = pull(address, topic, queue_offset, queue_id)
    return decode_messages(answer.body) if answer.code == ResponseCode.SUCCESS else []


def all_messages(address: str, topic: str, queue_id: int = 0) -> list[StoredMessage]:
    """All of a queue, from its first on."""
    found: list[StoredMessage] = []
    while part := stored_messages(address, topic, queue_id, len(found)):
        found += part
    return found


def message_count(address: str, topic: str, queue_id: int = 0) -> int:
    """One past the last queue offset."""
    fields = {"topic": topic, "queueId": str(queue_id)}
    return int(ask(address, Command(code=RequestCode.GET_MAX_OFFSET, ext_fields=fields)).ext_fields["offset"])


def stored_count(address: str, topic: str, queue_count: int) -> int:
    """The same, summed over the topic's queues."""
    return sum(message_count(address, topic, queue_id) for queue_id in range(queue_count))


def wait_stored(address: str, topic: str, count: int, queue_count: int = 1) -> None:
    """Until so many can be read: Apache's broker queues a message a little after it has answered its sender."""
    wait_until(lambda: stored_count(address, topic, queue_count) == count, what=f"{count} messages of {topic}")
